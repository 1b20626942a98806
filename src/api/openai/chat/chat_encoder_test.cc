#include "api/openai/chat/chat_encoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "api/openai/events_for_test.h"

namespace portico::api::openai {
namespace {

const AnswerHead kHead{"chatcmpl-1", 7, "demo"};

TextDelta Token(int32_t index, TokenId token, std::string text) {
  TextDelta delta;
  delta.index = index;
  delta.text = std::move(text);
  delta.tokens = {token};
  delta.usage = {5, 2, 1};
  return delta;
}

TextDelta End(int32_t index, FinishReason reason) {
  TextDelta delta;
  delta.index = index;
  delta.finish = reason;
  delta.usage = {5, 2, 1};
  return delta;
}

TextPositionLogprobs Position(TokenId token, std::string text, float logprob) {
  TextPositionLogprobs position;
  position.chosen = {token, text, text, logprob};
  position.top = {{token, text, text, logprob}, {token + 1, "\xEF\xBF\xBD", "\xF0\x9F", -INFINITY}};
  return position;
}

std::string Stream(const GenerationOptions& options, const std::vector<TextDelta>& deltas,
                   std::vector<TokenId> prompt_ids = {}) {
  ChatStreamEncoder encoder(kHead, options);
  std::string out;
  if (!prompt_ids.empty()) encoder.OnPrompt({0, "", std::move(prompt_ids), {}});
  for (const TextDelta& delta : deltas) encoder.OnDelta(delta, &out);
  encoder.OnEnd({5, 2, 3}, &out);
  return out;
}

TEST(ChatStreamEncoder, GivesRoleTokensFinishAndDone) {
  const std::string head =
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"demo","choices":[{"index":0,"delta":)";
  EXPECT_EQ(
      Stream({}, {Token(0, 1, "Hi\n"), Token(0, 2, ""), Token(0, 3, "🙂\""),
                  End(0, FinishReason::kLength)}),
      head +
          R"({"role":"assistant","content":"","reasoning_content":null},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          head +
          R"({"content":"Hi\n","reasoning_content":null},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          head +
          R"({"content":"","reasoning_content":null},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          head +
          R"({"content":"🙂\"","reasoning_content":null},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          head +
          R"({"reasoning_content":null},"logprobs":null,"finish_reason":"length","matched_stop":null}]})"
          "\n\n" +
          "data: [DONE]\n\n");
}

TEST(ChatStreamEncoder, UsageComesLastAndIsNullBefore) {
  GenerationOptions options;
  options.include_usage = true;
  auto data = DataOf(Stream(options, {Token(0, 1, "a"), End(0, FinishReason::kStop)}));
  ASSERT_EQ(data.size(), 5u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(Json::Parse(data[i])->Find("usage")->is_null());
  EXPECT_EQ(
      data[3],
      R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"demo","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":2},"reasoning_tokens":0}})");
}

TEST(ChatStreamEncoder, ContinuousUsageIsInEveryChunk) {
  GenerationOptions options;
  options.include_usage = options.continuous_usage_stats = true;
  TextDelta second = Token(0, 2, "b");
  second.usage.completion_tokens = 2;
  TextDelta last = End(0, FinishReason::kLength);
  last.usage.completion_tokens = 3;
  auto data = DataOf(Stream(options, {Token(0, 1, "a"), second, last}));
  ASSERT_EQ(data.size(), 6u);
  std::vector<int64_t> counts;
  for (size_t i = 0; i < 5; ++i) {
    counts.push_back(Json::Parse(data[i])->Find("usage")->GetInt("completion_tokens", -1));
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{0, 1, 2, 3, 3}));
}

TEST(ChatStreamEncoder, ChoicesInterleaveEachWithItsRoleAndFinish) {
  auto data = DataOf(Stream({}, {Token(1, 1, "a"), Token(0, 1, "b"), Token(1, 1, "c"),
                                 End(1, FinishReason::kStop), End(0, FinishReason::kLength)}));
  std::vector<std::string> seen;
  for (size_t i = 0; i + 1 < data.size(); ++i) {
    Json choice = ChoiceOf(data[i]);
    seen.push_back(std::to_string(choice.GetInt("index", -1)) +
                   choice.Find("delta")->GetString("role") +
                   choice.Find("delta")->GetString("content") + choice.GetString("finish_reason"));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"1assistant", "1a", "0assistant", "0b", "1c", "1stop",
                                            "0length"}));
}

TEST(ChatStreamEncoder, TheLastDeltasTextComesBeforeTheFinish) {
  TextDelta last = Token(0, 9, "tail");
  last.finish = FinishReason::kStop;
  last.matched_stop.text = "END";
  auto data = DataOf(Stream({}, {last}));
  ASSERT_EQ(data.size(), 4u);
  EXPECT_EQ(ChoiceOf(data[1]).Find("delta")->GetString("content"), "tail");
  EXPECT_EQ(ChoiceOf(data[2]).GetString("finish_reason"), "stop");
  EXPECT_EQ(ChoiceOf(data[2]).GetString("matched_stop"), "END");
}

TEST(ChatStreamEncoder, AStopTokenWithoutTextHasNoContentEvent) {
  GenerationOptions options;
  options.logprobs = options.return_token_ids = true;
  TextDelta last = Token(0, 9, "");
  last.finish = FinishReason::kStop;
  last.matched_stop.token = 9;
  last.logprobs = {Position(9, "<end>", -0.5f)};
  auto data = DataOf(Stream(options, {Token(0, 1, "a"), last}));
  ASSERT_EQ(data.size(), 4u);
  Json finish = ChoiceOf(data[2]);
  EXPECT_EQ(finish.GetInt("matched_stop", -1), 9);
  EXPECT_EQ(finish.Find("token_ids")->Dump(), "[9]");
  EXPECT_EQ(finish.Find("logprobs")->Find("content")->as_array().size(), 1u);
}

TEST(ChatStreamEncoder, ADeltaWithNothingGivesNothing) {
  ChatStreamEncoder encoder(kHead, {});
  std::string out;
  encoder.OnDelta(TextDelta(), &out);
  EXPECT_EQ(out, "");
}

TEST(ChatStreamEncoder, TextWithoutATokenIsAnEvent) {
  TextDelta held;
  held.text = "held back";
  EXPECT_EQ(DataOf(Stream({}, {held})).size(), 3u);
}

TEST(ChatStreamEncoder, LogprobsHaveTokenBytesAndAlternatives) {
  GenerationOptions options;
  options.logprobs = true;
  options.top_logprobs = 2;
  TextDelta delta = Token(0, 1, "é");
  delta.logprobs = {Position(1, "é", -0.25f)};
  auto data = DataOf(Stream(options, {delta}));
  EXPECT_EQ(
      ChoiceOf(data[1]).Find("logprobs")->Dump(),
      R"({"content":[{"token":"é","logprob":-0.25,"bytes":[195,169],"top_logprobs":[{"token":"é","logprob":-0.25,"bytes":[195,169]},{"token":")"
      "\xEF\xBF\xBD"
      R"(","logprob":-9999.0,"bytes":[240,159]}]}],"refusal":null})");
}

TEST(ChatStreamEncoder, TokenIdsAreInTheChunksAndThePromptsInTheFirst) {
  GenerationOptions options;
  options.return_token_ids = true;
  auto data = DataOf(Stream(options, {Token(0, 4, "a"), End(0, FinishReason::kLength)}, {1, 2, 3}));
  EXPECT_EQ(ChoiceOf(data[0]).Find("prompt_token_ids")->Dump(), "[1,2,3]");
  EXPECT_EQ(ChoiceOf(data[1]).Find("token_ids")->Dump(), "[4]");
  EXPECT_EQ(ChoiceOf(data[2]).Find("token_ids"), nullptr);
}

TEST(ChatStreamEncoder, AFailureIsOneErrorEventAndTheEnd) {
  ChatStreamEncoder encoder(kHead, {});
  std::string out;
  encoder.OnDelta(Token(0, 1, "a"), &out);
  out.clear();
  TextDelta failed = End(0, FinishReason::kError);
  failed.error = Error(StatusCode::kUnavailable, "gone");
  encoder.OnDelta(failed, &out);
  EXPECT_TRUE(encoder.ended());
  encoder.OnDelta(Token(1, 1, "late"), &out);
  encoder.OnEnd({}, &out);
  EXPECT_EQ(
      out,
      "data: "
      "{\"error\":{\"message\":\"gone\",\"type\":\"service_unavailable_error\",\"param\":null,"
      "\"code\":null}}\n\ndata: [DONE]\n\n");
}

TEST(ChatStreamEncoder, AnIdThatNeedsEscapesStaysJson) {
  ChatStreamEncoder encoder({"a\"\\\n", 1, "m\"x"}, {});
  std::string out;
  encoder.OnDelta(Token(0, 1, "\x01\xff"), &out);
  encoder.OnEnd({}, &out);
  EXPECT_EQ(DataOf(out).size(), 3u);
}

// The openai package raised AttributeError on delta.reasoning_content: a member that an answer lacks is no attribute.
TEST(ChatStreamEncoder, EveryDeltaHasItsReasoningOrNull) {
  TextDelta thought;
  thought.parsed = true;
  thought.reasoning = "Hm.";
  TextDelta both;
  both.parsed = true;
  both.text = "So: ";
  ToolCallPiece piece;
  piece.id = "call_1";
  piece.name = "f";
  piece.arguments = "{}";
  piece.text_before = 4;
  both.calls.push_back(piece);
  for (const bool detailed : {false, true}) {
    for (const std::string_view field : {"reasoning_content", "reasoning"}) {
      GenerationOptions options;
      options.reasoning_field = field;
      options.logprobs = options.return_token_ids = options.continuous_usage_stats = detailed;
      std::string seen;
      for (const std::string& data : DataOf(
               Stream(options, {thought, both, Token(0, 1, "a"), End(0, FinishReason::kStop)}))) {
        if (data == "[DONE]") continue;
        const Json event = *Json::Parse(data);
        if (event.Find("choices")->as_array().empty()) continue;
        const Json delta = *ChoiceOf(data).Find("delta");
        const Json* reasoning = delta.Find(field);
        ASSERT_NE(reasoning, nullptr) << data;
        seen += reasoning->is_null() ? "-" : reasoning->as_string();
      }
      // Role; thought; text, name, arguments; text; finish.
      EXPECT_EQ(seen, "-Hm.-----") << field;
    }
  }
}

TEST(ChatAnswer, EveryMessageHasItsReasoningOrNull) {
  for (const std::string_view field : {"reasoning_content", "reasoning"}) {
    GenerationOptions options;
    options.reasoning_field = field;
    ChatAnswer answer(kHead, options);
    TextDelta thought = Token(1, 1, "");
    thought.reasoning = "Hm.";
    for (const TextDelta& delta :
         {Token(0, 1, "a"), thought, End(0, FinishReason::kStop), End(1, FinishReason::kStop)}) {
      answer.OnDelta(delta);
    }
    const Json body = *Json::Parse(answer.Body({}));
    const JsonArray& choices = body.Find("choices")->as_array();
    EXPECT_TRUE(choices[0].Find("message")->Find(field)->is_null());
    EXPECT_EQ(choices[1].Find("message")->GetString(field), "Hm.");
  }
}

TEST(ChatAnswer, IsOpenAisObject) {
  ChatAnswer answer(kHead, {});
  answer.OnDelta(Token(1, 2, "B"));
  answer.OnDelta(Token(0, 1, "A\n"));
  answer.OnDelta(Token(0, 1, "é"));
  answer.OnDelta(End(0, FinishReason::kLength));
  TextDelta last = End(1, FinishReason::kStop);
  last.matched_stop.token = 8;
  answer.OnDelta(last);
  EXPECT_TRUE(answer.error().ok());
  EXPECT_EQ(
      answer.Body({5, 0, 3}),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"demo","choices":[)"
      R"({"index":0,"message":{"role":"assistant","content":"A\né","reasoning_content":null,"refusal":null},"logprobs":null,"finish_reason":"length","matched_stop":null},)"
      R"({"index":1,"message":{"role":"assistant","content":"B","reasoning_content":null,"refusal":null},"logprobs":null,"finish_reason":"stop","matched_stop":8}],)"
      R"("usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":0},"reasoning_tokens":0}})");
}

TEST(ChatAnswer, HasLogprobsAndIdsWhereAskedFor) {
  GenerationOptions options;
  options.logprobs = options.return_token_ids = true;
  ChatAnswer answer(kHead, options);
  answer.OnPrompt({0, "", {3, 4}, {}});
  for (TokenId token : {1, 2}) {
    TextDelta delta = Token(0, token, "x");
    delta.logprobs = {Position(token, "x", -1.0f)};
    answer.OnDelta(delta);
  }
  answer.OnDelta(End(0, FinishReason::kLength));
  Json choice = ChoiceOf(answer.Body({}));
  EXPECT_EQ(choice.Find("token_ids")->Dump(), "[1,2]");
  EXPECT_EQ(choice.Find("prompt_token_ids")->Dump(), "[3,4]");
  const JsonArray& content = choice.Find("logprobs")->Find("content")->as_array();
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[1].GetDouble("logprob", 0), -1.0);
}

TEST(ChatAnswer, KeepsTheErrorOfAFailedChoice) {
  ChatAnswer answer(kHead, {});
  answer.OnDelta(End(0, FinishReason::kError));
  EXPECT_EQ(answer.error().code(), StatusCode::kInternal);
}

TEST(Logprobs, AreTheShortestTextOfTheFloat) {
  std::string out;
  for (float value : {-0.1f, 0.0f, -2.0f, -1.5e-8f, -INFINITY, NAN}) {
    AppendLogprob(value, &out);
    out += ' ';
  }
  EXPECT_EQ(out, "-0.1 0.0 -2.0 -1.5e-08 -9999.0 -9999.0 ");
}

}  // namespace
}  // namespace portico::api::openai
