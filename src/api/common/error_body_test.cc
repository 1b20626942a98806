#include "api/common/error_body.h"

#include <gtest/gtest.h>

namespace portico::api {
namespace {

TEST(ErrorBody, NamesFieldAndCode) {
  EXPECT_EQ(
      ErrorBody(InvalidArgument("stop", "no \"x\"")),
      R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"stop","code":null}})");
  EXPECT_EQ(
      ErrorBody(Error(StatusCode::kNotFound, "none", "model", "model_not_found")),
      R"({"error":{"message":"none","type":"invalid_request_error","param":"model","code":"model_not_found"}})");
}

TEST(ErrorBody, TypeFollowsTheStatus) {
  struct Case {
    StatusCode code;
    const char* type;
  };
  for (const Case& c :
       {Case{StatusCode::kUnauthenticated, "authentication_error"},
        Case{StatusCode::kPermissionDenied, "permission_error"},
        Case{StatusCode::kResourceExhausted, "rate_limit_error"},
        Case{StatusCode::kUnavailable, "service_unavailable_error"},
        Case{StatusCode::kDeadlineExceeded, "timeout_error"},
        Case{StatusCode::kInternal, "server_error"}, Case{StatusCode::kUnknown, "server_error"},
        Case{StatusCode::kFailedPrecondition, "invalid_request_error"}}) {
    EXPECT_NE(ErrorBody(Error(c.code, "m")).find("\"type\":\"" + std::string(c.type) + "\""),
              std::string::npos)
        << c.type;
  }
  EXPECT_EQ(
      ErrorBody(413, "too long"),
      R"({"error":{"message":"too long","type":"invalid_request_error","param":null,"code":null}})");
}

}  // namespace
}  // namespace portico::api
