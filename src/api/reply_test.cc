#include "api/reply.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "message/request_media.h"

namespace portico::api {
namespace {

TEST(NewRequestId, IsThePrefixAnd32HexadecimalDigitsThatNoOtherHas) {
  std::set<std::string> ids;
  std::set<char> digits;
  for (int i = 0; i < 200; ++i) {
    const std::string id = NewRequestId("chatcmpl-");
    ASSERT_EQ(id.size(), 9u + 32u);
    EXPECT_TRUE(id.starts_with("chatcmpl-"));
    digits.insert(id.begin() + 9, id.end());
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 200u);
  EXPECT_EQ(std::string(digits.begin(), digits.end()), "0123456789abcdef");
  EXPECT_EQ(NewRequestId().size(), 32u);
}

TEST(ErrorResponse, NamesTheReasonOfAFailureInItsHeadForGateways) {
  const auto reason = [](const Status& status) {
    const net::HttpResponse response = ErrorResponse(net::HttpRequest(), ApiContext(), status);
    for (const auto& [name, value] : response.headers) {
      if (name == kFailureHeader) return value;
    }
    return std::string("none");
  };
  EXPECT_EQ(reason(Error(StatusCode::kInternal, "m", {}, kMediaFailed)), kMediaFailed);
  EXPECT_EQ(reason(Error(StatusCode::kUnavailable, "m", {}, kMediaFailed)), kMediaFailed);
  EXPECT_EQ(reason(Error(StatusCode::kInternal, "m")), "none");
  EXPECT_EQ(reason(ContextExceeded("messages", "m")), "none");
}

}  // namespace
}  // namespace portico::api
