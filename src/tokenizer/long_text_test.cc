#include "tokenizer/long_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

// The text of 30 MB of a client that had left was encoded to its end. That the ids are those of the whole text:
// batch_test.cc, ExpectSameIds().
TEST(LongTextEncoder, AsksBeforeEachPartAndEndsWhereItIsToldTo) {
  const auto tokenizer = *Tokenizer::FromJson(tokenizer::ByteLevelJson({{"a", "b"}}));
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "ab ab\n";
  const LongTextEncoder encoder(tokenizer, 1000);
  int asked = 0;
  std::vector<TokenId> ids = {7};
  const auto count = [&asked] {
    ++asked;
    return OkStatus();
  };
  ASSERT_TRUE(encoder.Encode(text, false, count, &ids).ok());
  EXPECT_EQ(asked, 6);
  ids.resize(1);
  asked = 0;
  const auto twice = [&asked] {
    return ++asked < 3 ? OkStatus() : Error(StatusCode::kCancelled, "the client has left");
  };
  EXPECT_EQ(encoder.Encode(text, true, twice, &ids).code(), StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(ids, std::vector<TokenId>{7});
}

}  // namespace
}  // namespace portico
