#include "api/refusal_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/reply.h"

namespace portico::api {
namespace {

using testing::HasSubstr;

TEST(RefusalLog, ShowsFieldMessageAndCodeWithoutValuesOfTheRequest) {
  const auto shown = [](std::string_view field, std::string message, std::string_view code = {}) {
    return ShownReason(Error(StatusCode::kInvalidArgument, std::move(message), field, code));
  };
  EXPECT_EQ(shown("top_p", "top_p must be above 0 and at most 1, got 9"),
            "top_p must be above 0 and at most 1");
  EXPECT_EQ(shown("messages", "messages[0].role must be system or user, got \"secret\""),
            "messages[0].role must be system or user");
  EXPECT_EQ(shown("logit_bias", "logit_bias[\"secret\"] must be a number"), "logit_bias[ …");
  EXPECT_EQ(shown("model", "the model `x` does not exist", "model_not_found"),
            "model; code model_not_found");
  EXPECT_EQ(shown("", "incorrect or missing API key", "invalid_api_key"),
            "incorrect or missing API key; code invalid_api_key");
  // A template's words, a schema's and a pattern's may be the client's.
  EXPECT_EQ(shown("messages", "secret is no role (chat template, line 3)"), "messages");
  EXPECT_EQ(shown("regex", "regex: secret( is not closed"), "regex");
  EXPECT_EQ(shown("response_format", "response_format: /properties/secret: $ref: a"),
            "response_format");
  EXPECT_EQ(shown("tools[0].function.parameters",
                  "tools[0].function.parameters: #/properties/secret: type: x"),
            "tools[0].function.parameters");
  EXPECT_EQ(shown("logit_bias", "logit_bias: secret is not a token id"), "logit_bias …");
  EXPECT_EQ(shown("session_params", "session_params has no secret"), "session_params …");
  EXPECT_EQ(shown("", "the body must be application/json, not text/secret"),
            "the body must be application/json …");
}

TEST(RefusalLog, NamesThatClientsMakeUpAreCut) {
  const std::string name(20'000, 'x');
  EXPECT_LT(ShownReason(Error(StatusCode::kInvalidArgument, "there is no " + name, name)).size(),
            100u);
  ApiContext api;
  testing::internal::CaptureStderr();
  LogRefusal(api, "POST /x 400", "id7; id forged", InvalidArgument("n", "n must be 1"));
  LogRefusal(api, "POST /x 400", name, InvalidArgument("n", "n must be 1"));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::Not(HasSubstr("forged")));
  EXPECT_LT(log.size(), 300u);
}

TEST(RefusalLog, WhoeverHasNoKeyHidesNoRefusalOfOthers) {
  ApiContext api;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) {
    LogRefusal(api, "POST /x 401", "", Error(StatusCode::kUnauthenticated, "incorrect API key"));
  }
  LogRefusal(api, "POST /x 400", "", InvalidArgument("n", "n must be 1"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("n must be 1"));
}

std::string LogOf(ApiContext* api, int answers) {
  net::HttpRequest request;
  request.method = "POST";
  request.path = "/v1/x";
  request.headers.emplace_back("x-request-id", "id7");
  testing::internal::CaptureStderr();
  for (int i = 0; i < answers; ++i) {
    ErrorResponse(request, *api, InvalidArgument("n", "n must be 1, got 2"));
    ErrorResponse(request, *api, 405, "POST is not allowed on /v1/x; use GET");
  }
  return testing::internal::GetCapturedStderr();
}

// A 400 was in no log with its reason.
TEST(RefusalLog, HasALineOfEachRefusalWhereRequestsAreLogged) {
  ApiContext api;
  EXPECT_EQ(LogOf(&api, 1), "");
  api.log_requests = true;
  const std::string log = LogOf(&api, 1);
  EXPECT_THAT(log, HasSubstr("info refused POST /v1/x 400: n must be 1; id id7\n"));
  EXPECT_THAT(log, HasSubstr("info refused POST /v1/x 405: POST is not allowed on /v1/x; use GET; "
                             "id id7\n"));
}

TEST(RefusalLog, IsNotFilledByAFloodOfRefusals) {
  ApiContext api;
  api.log_requests = true;
  const std::string log = LogOf(&api, 500);
  // Ten, and ten more for each second that a busy machine takes for them.
  EXPECT_GE(std::count(log.begin(), log.end(), '\n'), 10);
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 1000);
}

}  // namespace
}  // namespace portico::api
