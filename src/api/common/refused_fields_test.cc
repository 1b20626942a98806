#include "api/common/refused_fields.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::api {
namespace {

// What is said of the field with this value, as JSON; "accepted" where it asks for nothing.
std::string RefusedWith(std::string_view name, const std::string& value) {
  simdjson::dom::parser parser;
  Status status;
  const simdjson::padded_string padded(value);
  EXPECT_TRUE(IsRefusedField(name, parser.parse(padded).value(), &status)) << name;
  return status.ok() ? "accepted" : std::string(MessageOf(status));
}

// They were refused, or ignored, without the name of what does the same here.
TEST(RefusedFields, OnesThatHaveAnEqualHereAreRefusedWithItsName) {
  EXPECT_EQ(RefusedWith("include_stop_str_in_output", "true"),
            "include_stop_str_in_output is not supported by this server: its name here is "
            "no_stop_trim");
  EXPECT_EQ(RefusedWith("include_stop_str_in_output", "false"), "accepted");
  EXPECT_EQ(RefusedWith("thinking_token_budget", "100"),
            "thinking_token_budget is not supported by this server: its name here is "
            "max_thinking_tokens");
  EXPECT_EQ(RefusedWith("thinking_token_budget", "-1"), "accepted");
  EXPECT_EQ(RefusedWith("prompt_logprobs", "1"),
            "prompt_logprobs is not supported by this server: echo with logprobs of "
            "/v1/completions returns them, and logprob_start_len of /generate");
  EXPECT_EQ(RefusedWith("prompt_logprobs", "null"), "accepted");
  EXPECT_EQ(RefusedWith("input_ids", "[1]"),
            "input_ids is not supported by this server: prompt of /v1/completions and input_ids of "
            "/generate are token ids");
}

TEST(RefusedFields, OthersAreRefusedWithTheValuesThatAreAccepted) {
  EXPECT_EQ(RefusedWith("store", "true"),
            "store is not supported by this server: only false is accepted");
  EXPECT_EQ(RefusedWith("service_tier", R"("flex")"),
            "service_tier is not supported by this server: only \"auto\" or \"default\" is "
            "accepted");
  EXPECT_EQ(RefusedWith("prediction", "{}"),
            "prediction is not supported by this server: leave it out");
}

}  // namespace
}  // namespace portico::api
