// The count of a prompt's tokens in what workers answer.
#include "router/proxy/usage_tail.h"

#include <gtest/gtest.h>

#include <string>

namespace portico::router {
namespace {

TEST(FindPromptTokensTest, ReadsTheUsageOfAWholeAnswerAndOfAStreamsLastEvents) {
  EXPECT_EQ(
      FindPromptTokens(R"({"choices":[],"usage":{"prompt_tokens":5072,"total_tokens":5074}})"),
      5072);
  EXPECT_EQ(FindPromptTokens(R"({"choices": [], "usage": {"prompt_tokens": 7, "details": null}, )"
                             R"("metadata": {"version": "default"}})"
                             "\n"),
            7);
  const std::string event = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":31,\"x\":0}}\n\n";
  EXPECT_EQ(FindPromptTokens(event), 31);
  EXPECT_EQ(FindPromptTokens(event + "data: [DONE]\n\n"), 31);
  EXPECT_EQ(FindPromptTokens(std::string(5000, 'x') + event), 31);
}

TEST(FindPromptTokensTest, TakesNothingFromWhatHasNone) {
  for (const char* piece : {"", "\n\n", "}", "data: [DONE]\n\n", R"({"usage":{"prompt_tokens":)",
                            R"("prompt_tokens":5)", R"({"usage":{"prompt_tokens":null}})",
                            R"({"usage":{"prompt_tokens":-5}})", R"({"usage":{"prompt_tokens":0}})",
                            R"({"usage":{"prompt_tokens":99999999999999999999}})",
                            R"({"content":"\"prompt_tokens\":5 "})",
                            R"({"prompt_tokens":5,"choices":[{"text":"a"}]})"}) {
    EXPECT_FALSE(FindPromptTokens(piece).has_value()) << piece;
  }
}

}  // namespace
}  // namespace portico::router
