#include "text/byte_order_mark.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

TEST(ByteOrderMark, OfUtf8IsTakenOffOnceAndOnlyAtTheStart) {
  std::string text = "\xEF\xBB\xBF{}";
  EXPECT_TRUE(DropByteOrderMark(&text).ok());
  EXPECT_EQ(text, "{}");
  for (const std::string kept : {"", "{}", "\xEF\xBB", "{\"a\":\"\xEF\xBB\xBF\"}"}) {
    text = kept;
    EXPECT_TRUE(DropByteOrderMark(&text).ok());
    EXPECT_EQ(text, kept);
  }
}

TEST(ByteOrderMark, OfAnotherEncodingIsNamed) {
  for (const std::string& marked :
       {std::string("\xFF\xFE{\0}\0", 6), std::string("\xFE\xFF\0{\0}", 6),
        std::string("\xFF\xFE\0\0{\0\0\0", 8), std::string("\0\0\xFE\xFF\0\0\0{", 8)}) {
    std::string text = marked;
    const Status status = DropByteOrderMark(&text);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(MessageOf(status).find("UTF-16"), std::string_view::npos);
    EXPECT_EQ(text, marked);
  }
}

}  // namespace
}  // namespace portico
