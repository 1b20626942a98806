#include "api/openai/completion/decode_completion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

namespace portico::api::openai {
namespace {

StatusOr<CompletionRequest> Decode(const std::string& body) {
  static simdjson::dom::parser parser;
  return DecodeCompletion(body, parser);
}

StatusOr<CompletionRequest> CompletionWith(const std::string& members) {
  return Decode(R"({"prompt":"Hi")" + (members.empty() ? "" : "," + members) + "}");
}

TEST(DecodeCompletion, FillsDefaultsWhereTheRequestIsSilent) {
  auto request = CompletionWith("");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->options.max_tokens, 16);
  EXPECT_EQ(request->options.n, 1);
  EXPECT_EQ(request->options.best_of, 1);
  EXPECT_FALSE(request->options.logprobs || request->echo);
}

TEST(DecodeCompletion, APromptHasFourForms) {
  auto text = Decode(R"({"prompt":"é"})");
  ASSERT_EQ(text->prompts.size(), 1u);
  EXPECT_EQ(text->prompts[0].text, "é");
  EXPECT_FALSE(text->prompts[0].is_ids);

  auto texts = Decode(R"({"prompt":["a","","c"]})");
  ASSERT_EQ(texts->prompts.size(), 3u);
  EXPECT_EQ(texts->prompts[2].text, "c");

  auto ids = Decode(R"({"prompt":[5,0,2147483647]})");
  ASSERT_EQ(ids->prompts.size(), 1u);
  EXPECT_TRUE(ids->prompts[0].is_ids);
  EXPECT_EQ(ids->prompts[0].ids, (std::vector<TokenId>{5, 0, 2147483647}));

  auto lists = Decode(R"({"prompt":[[1],[2,3]]})");
  ASSERT_EQ(lists->prompts.size(), 2u);
  EXPECT_TRUE(lists->prompts[1].is_ids);
  EXPECT_EQ(lists->prompts[1].ids, (std::vector<TokenId>{2, 3}));
}

TEST(DecodeCompletion, AWrongPromptIsNamed) {
  for (const char* prompt : {"[]",
                             "7",
                             "{}",
                             "true",
                             "null",
                             "[[]]",
                             "[\"a\",7]",
                             "[7,\"a\"]",
                             "[[1],\"a\"]",
                             "[[1],2]",
                             "[\"a\",[1]]",
                             "[-1]",
                             "[1.5]",
                             "[2147483648]",
                             "[[1],[\"a\"]]",
                             "[null]",
                             "[{}]",
                             "[true]",
                             "[[1],[]]",
                             "[1,null]",
                             "[18446744073709551615]"}) {
    auto request = Decode("{\"prompt\":" + std::string(prompt) + "}");
    ASSERT_FALSE(request.ok()) << prompt;
    EXPECT_EQ(FieldOf(request.status()), "prompt") << prompt;
  }
  EXPECT_EQ(FieldOf(Decode("{}").status()), "prompt");
}

TEST(DecodeCompletion, AWrongFieldIsNamed) {
  struct WrongField {
    const char* param;
    std::vector<const char*> values;
  };
  for (const WrongField& field : {
           WrongField{"max_tokens", {"0", "-1", "1.5", "\"1\"", "9223372036854775808"}},
           WrongField{"logprobs", {"21", "-1", "true", "1.5", "\"1\""}},
           WrongField{"best_of", {"0", "129", "1.5", "\"1\"", "true"}},
           WrongField{"echo", {"1", "\"x\""}},
           WrongField{"suffix", {"\"y\"", "7"}},
           WrongField{"n", {"0", "129", "1.5"}},
           WrongField{"temperature", {"-1", "\"1\""}},
           WrongField{"stop", {"7", "[1]"}},
           WrongField{"json_schema", {"\"\""}},
           WrongField{"response_format", {"{\"type\":\"x\"}"}},
           WrongField{"regex", {"7"}},
           WrongField{"custom_labels", {"{\"a\":\"b\"}"}},
           WrongField{"max_completion_tokens", {"5"}},
           WrongField{"messages", {"[]"}},
           // It was ignored: the answer came with the default temperature.
           WrongField{"sampling_params", {"{\"temperature\":0}", "7", "[]"}},
           WrongField{"stream_options", {"{\"include_usage\":true}"}},
       }) {
    for (const char* value : field.values) {
      auto request = CompletionWith(fmt::format("\"{}\":{}", field.param, value));
      ASSERT_FALSE(request.ok()) << field.param << value;
      EXPECT_EQ(FieldOf(request.status()), field.param) << value;
    }
  }
}

TEST(DecodeCompletion, NoNewTokensAreAllowedWithEchoOnly) {
  EXPECT_EQ(FieldOf(CompletionWith(R"("max_tokens":0,"echo":false)").status()), "max_tokens");
  auto request = CompletionWith(R"("max_tokens":0,"echo":true,"logprobs":0)");
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(request->echo && request->options.logprobs);
  EXPECT_EQ(request->options.max_tokens, 0);
  EXPECT_EQ(request->options.top_logprobs, 0);
}

TEST(DecodeCompletion, BestOfIsAtLeastNAndNotStreamed) {
  EXPECT_EQ(CompletionWith(R"("n":3)")->options.best_of, 3);
  EXPECT_EQ(CompletionWith(R"("n":2,"best_of":4)")->options.best_of, 4);
  EXPECT_TRUE(CompletionWith(R"("best_of":1,"stream":true)").ok());
  EXPECT_EQ(FieldOf(CompletionWith(R"("n":3,"best_of":2)").status()), "best_of");
  EXPECT_EQ(FieldOf(CompletionWith(R"("best_of":2,"stream":true)").status()), "best_of");
}

TEST(DecodeCompletion, PromptsTimesAnswersAreBounded) {
  std::string body = R"({"n":128,"prompt":["x")";
  for (int i = 0; i < 32; ++i) body += ",\"x\"";
  EXPECT_EQ(FieldOf(Decode(body + "]}").status()), "n");
  std::string many = R"({"prompt":["x")";
  for (int i = 0; i < kMaxChoices; ++i) many += ",\"x\"";
  EXPECT_EQ(FieldOf(Decode(many + "]}").status()), "prompt");
}

TEST(DecodeCompletion, CallsAndReasoningAreReadInChatsOnly) {
  // A required call was text, and reasoning had no bound.
  EXPECT_EQ(FieldOf(CompletionWith(R"("tools":[{"type":"function"}])").status()), "tools");
  EXPECT_EQ(FieldOf(CompletionWith(R"("tool_choice":"required")").status()), "tool_choice");
  EXPECT_EQ(FieldOf(CompletionWith(R"("max_thinking_tokens":5)").status()), "max_thinking_tokens");
  EXPECT_EQ(FieldOf(CompletionWith(R"("require_reasoning":true)").status()), "require_reasoning");
  EXPECT_TRUE(CompletionWith(R"("tools":[],"tool_choice":"none","max_thinking_tokens":null)").ok());
}

TEST(DecodeCompletion, AnEmptySuffixIsNone) { EXPECT_TRUE(CompletionWith(R"("suffix":"")").ok()); }

// Each prompt was read, and a tree made of all, before it was known that the answers cost too much: 20 ms for 4 MiB.
TEST(DecodeCompletion, TheOptionsOfALongBodyAreKnownWithoutItsPrompts) {
  simdjson::dom::parser parser;
  struct Seen {
    int64_t max_tokens = 0;
    int32_t best_of = 0;
    size_t prompts = 0;
  };
  std::optional<Seen> seen;
  const auto look = [&](const GenerationOptions& options, size_t prompts) {
    seen = Seen{*options.max_tokens, options.best_of, prompts};
    return InvalidArgument("n", "too much");
  };
  const auto check = [&](const std::string& body) {
    seen.reset();
    return CheckLongCompletion(body, parser, look);
  };
  EXPECT_EQ(FieldOf(check(R"({"n":3,"prompt":["a","b",nonsense],"logprobs":2})")), "n");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->max_tokens, kDefaultCompletionTokens);
  EXPECT_EQ(seen->best_of, 3);
  EXPECT_EQ(seen->prompts, 3u);
  EXPECT_FALSE(check(R"({"max_tokens":7,"prompt":[1,2,3]})").ok());
  EXPECT_EQ(seen->max_tokens, 7);
  EXPECT_EQ(seen->prompts, 1u);
  EXPECT_FALSE(check(R"({"prompt":[[1,2],[3]]})").ok());
  EXPECT_EQ(seen->prompts, 2u);
  // A wrong field is named, and what is no JSON object is left to DecodeCompletion().
  EXPECT_EQ(FieldOf(check(R"({"n":"3","prompt":[1]})")), "n");
  EXPECT_FALSE(seen);
  // As is a long list that is too long, without its items.
  std::string ids = "nonsense";
  for (size_t i = 0; i < kMaxStopTokenIds; ++i) ids += ",nonsense";
  const std::string too_long = R"("stop_token_ids":[)" + ids + "]";
  EXPECT_EQ(FieldOf(check(R"({"prompt":[1],)" + too_long + "}")), "stop_token_ids");
  EXPECT_FALSE(seen);
  // It was refused, too, where another list follows it, which counts.
  EXPECT_EQ(
      FieldOf(check("{" + too_long + R"(,"prompt":["a","b"],"prompt":[1],"stop_token_ids":[1]})")),
      "n");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->prompts, 1u);
  seen.reset();
  for (const char* body : {"{\"n\":01,\"prompt\":[1]}", "[1]", "{\"prompt\":[1"}) {
    EXPECT_TRUE(check(body).ok()) << body;
    EXPECT_FALSE(seen) << body;
  }
}

TEST(DecodeCompletion, EmptySamplingParamsAskForNothing) {
  EXPECT_TRUE(CompletionWith(R"("sampling_params":{})").ok());
  EXPECT_TRUE(CompletionWith(R"("sampling_params":null)").ok());
}

}  // namespace
}  // namespace portico::api::openai
