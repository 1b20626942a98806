#include "api/openai/completion/completion_encoder.h"

#include <gtest/gtest.h>

#include <thread>

#include "api/common/long_prompt.h"
#include "api/openai/events_for_test.h"

namespace portico::api::openai {
namespace {

const AnswerHead kCompletionHead{"cmpl-1", 7, "demo"};

TextPositionLogprobs Position(TokenId token, const std::string& text, const std::string& bytes,
                              std::optional<float> logprob) {
  TextPositionLogprobs position;
  position.chosen = {token, text, bytes, logprob};
  if (logprob) position.top = {{token + 1, " the", " the", -0.125f}};
  return position;
}

TextDelta Token(int32_t index, TokenId token, const std::string& text, float logprob = -0.5f) {
  TextDelta delta;
  delta.index = index;
  delta.text = text;
  delta.tokens = {token};
  delta.logprobs = {Position(token, text, text, logprob)};
  delta.usage = {2, 0, 1};
  return delta;
}

TextDelta End(int32_t index, FinishReason reason = FinishReason::kLength) {
  TextDelta delta;
  delta.index = index;
  delta.finish = reason;
  delta.usage = {2, 0, 1};
  return delta;
}

PromptEcho Prompt(int32_t index, bool with_logprobs) {
  PromptEcho prompt;
  prompt.prompt = index;
  prompt.text = "é one";
  prompt.tokens = {1, 2, 3};
  if (with_logprobs) {
    prompt.logprobs = {Position(1, "<s>", "<s>", std::nullopt), Position(2, "é", "é", -1.0f),
                       Position(3, " one", " one", -2.0f)};
  }
  return prompt;
}

TEST(CompletionAnswer, IsOpenAisObject) {
  CompletionAnswer answer(kCompletionHead, {});
  answer.OnDelta(Token(0, 1, "a\"🙂"));
  answer.OnDelta(End(0));
  EXPECT_EQ(
      answer.Body({2, 1, 1}),
      R"({"id":"cmpl-1","object":"text_completion","created":7,"model":"demo","choices":[)"
      R"({"index":0,"text":"a\"🙂","logprobs":null,"finish_reason":"length","matched_stop":null}],)"
      R"("usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":1},"reasoning_tokens":0}})");
}

TEST(CompletionAnswer, LogprobsAreParallelListsWithOffsetsInCodePoints) {
  GenerationOptions options;
  options.logprobs = true;
  options.top_logprobs = 1;
  CompletionAnswer answer(kCompletionHead, options);
  answer.OnDelta(Token(0, 1, "é"));
  answer.OnDelta(Token(0, 2, "xy"));
  answer.OnDelta(Token(0, 3, " the"));
  answer.OnDelta(End(0));
  EXPECT_EQ(
      ChoiceOf(answer.Body({})).Find("logprobs")->Dump(),
      R"({"tokens":["é","xy"," the"],"token_logprobs":[-0.5,-0.5,-0.5],)"
      R"("top_logprobs":[{" the":-0.125,"é":-0.5},{" the":-0.125,"xy":-0.5},{" the":-0.125}],)"
      R"("text_offset":[0,1,3]})");
}

TEST(CompletionAnswer, WithoutAlternativesTopLogprobsIsNull) {
  GenerationOptions options;
  options.logprobs = true;
  CompletionAnswer answer(kCompletionHead, options);
  answer.OnDelta(Token(0, 1, "a"));
  answer.OnDelta(End(0));
  EXPECT_TRUE(ChoiceOf(answer.Body({})).Find("logprobs")->Find("top_logprobs")->is_null());
}

// The first token has no log-probability, and a begin token is not in the text.
TEST(CompletionAnswer, EchoPutsThePromptFirst) {
  GenerationOptions options;
  options.logprobs = options.return_token_ids = true;
  options.top_logprobs = 1;
  CompletionAnswer answer(kCompletionHead, options);
  answer.OnPrompt(Prompt(0, true));
  answer.OnDelta(Token(0, 4, " two"));
  answer.OnDelta(End(0));
  Json choice = ChoiceOf(answer.Body({}));
  EXPECT_EQ(choice.GetString("text"), "é one two");
  EXPECT_EQ(choice.Find("logprobs")->Dump(),
            R"({"tokens":["<s>","é"," one"," two"],"token_logprobs":[null,-1.0,-2.0,-0.5],)"
            R"("top_logprobs":[null,{" the":-0.125,"é":-1.0},{" the":-0.125," one":-2.0},)"
            R"({" the":-0.125," two":-0.5}],"text_offset":[0,0,1,5]})");
  EXPECT_EQ(choice.Find("token_ids")->Dump(), "[4]");
  EXPECT_EQ(choice.Find("prompt_token_ids")->Dump(), "[1,2,3]");
}

// Its first token had the offset of its last.
TEST(CompletionAnswer, TheFirstTokenOfAPromptThatWasNotComputedIsAtItsStart) {
  GenerationOptions options;
  options.logprobs = true;
  CompletionAnswer answer(kCompletionHead, options);
  PromptEcho prompt = Prompt(0, true);
  prompt.tokens = {2, 3};
  prompt.logprobs = {Position(2, "é", "é", std::nullopt)};
  answer.OnPrompt(prompt);
  answer.OnDelta(End(0, FinishReason::kAbort));
  EXPECT_EQ(ChoiceOf(answer.Body({})).Find("logprobs")->Find("text_offset")->Dump(), "[0]");
}

TEST(CompletionAnswer, EchoWithoutNewTokensIsThePrompt) {
  GenerationOptions options;
  options.logprobs = true;
  CompletionAnswer answer(kCompletionHead, options);
  answer.OnPrompt(Prompt(0, true));
  answer.OnDelta(End(0));
  Json choice = ChoiceOf(answer.Body({}));
  EXPECT_EQ(choice.GetString("text"), "é one");
  EXPECT_EQ(choice.Find("logprobs")->Find("token_logprobs")->Dump(), "[null,-1.0,-2.0]");
}

TEST(CompletionAnswer, EachChoiceHasItsOwnPrompt) {
  GenerationOptions options;
  options.n = 2;
  CompletionAnswer answer(kCompletionHead, options);
  PromptEcho second = Prompt(1, false);
  second.text = "second";
  answer.OnPrompt(second);
  answer.OnPrompt(Prompt(0, false));
  for (int32_t i : {3, 1, 0, 2}) answer.OnDelta(Token(i, 1, "!"));
  for (int32_t i : {0, 1, 2, 3}) answer.OnDelta(End(i));
  auto body = Json::Parse(answer.Body({}));
  ASSERT_TRUE(body.ok());
  const JsonArray& choices = body->Find("choices")->as_array();
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[1].GetString("text"), "é one!");
  EXPECT_EQ(choices[2].GetString("text"), "second!");
}

// A character spread over tokens counts once, with the token that begins it.
TEST(CompletionLogprobs, PartsOfACharacterShareItsPlace) {
  CompletionLogprobs logprobs;
  for (const char* bytes : {"a", "\xF0\x9F", "\x99\x82", "b"}) {
    logprobs.Add(Position(1, "?", bytes, -1.0f));
  }
  std::string out;
  logprobs.Flush(&out);
  EXPECT_EQ(Json::Parse(out)->Find("text_offset")->Dump(), "[0,1,2,2]");
}

// The offsets went on over special tokens that the text does not have.
TEST(CompletionLogprobs, HiddenTokensTakeNoPlaceInTheText) {
  CompletionLogprobs logprobs;
  PromptEcho prompt;
  prompt.text = "ab";
  prompt.logprobs = {Position(1, "a", "a", std::nullopt), Position(9, "<s>", "<s>", -1.0f),
                     Position(2, "b", "b", -1.0f)};
  prompt.logprobs[1].hidden = true;
  logprobs.AddPrompt(prompt);
  TextPositionLogprobs special = Position(9, "<s>", "<s>", -1.0f);
  special.hidden = true;
  logprobs.Add(special);
  logprobs.Add(Position(3, "c", "c", -1.0f));
  std::string out;
  logprobs.Flush(&out);
  EXPECT_EQ(Json::Parse(out)->Find("text_offset")->Dump(), "[0,1,1,2,2]");
}

std::string Stream(const GenerationOptions& options, const std::vector<PromptEcho>& prompts,
                   const std::vector<TextDelta>& deltas) {
  CompletionStreamEncoder encoder(kCompletionHead, options);
  std::string out;
  for (const PromptEcho& prompt : prompts) encoder.OnPrompt(prompt);
  for (const TextDelta& delta : deltas) encoder.OnDelta(delta, &out);
  encoder.OnEnd({2, 0, 3}, &out);
  return out;
}

TEST(CompletionStreamEncoder, GivesTokensFinishUsageAndDone) {
  GenerationOptions options;
  options.include_usage = true;
  const std::string head =
      R"(data: {"id":"cmpl-1","object":"text_completion","created":7,"model":"demo","choices":[)";
  EXPECT_EQ(
      Stream(options, {}, {Token(0, 1, "a\t"), Token(0, 2, ""), End(0)}),
      head +
          R"({"index":0,"text":"a\t","logprobs":null,"finish_reason":null}],"usage":null})"
          "\n\n" +
          head +
          R"({"index":0,"text":"","logprobs":null,"finish_reason":null}],"usage":null})"
          "\n\n" +
          head +
          R"({"index":0,"text":"","logprobs":null,"finish_reason":"length","matched_stop":null}],"usage":null})"
          "\n\n" +
          head +
          R"(],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0},"reasoning_tokens":0}})"
          "\n\n" +
          "data: [DONE]\n\n");
}

TEST(CompletionStreamEncoder, EchoIsTheFirstEventOfEachChoice) {
  GenerationOptions options;
  options.n = 2;
  options.logprobs = options.return_token_ids = true;
  auto data =
      DataOf(Stream(options, {Prompt(0, true)},
                    {Token(1, 4, " two"), Token(0, 5, " 2"), Token(1, 6, "x"), End(0), End(1)}));
  ASSERT_EQ(data.size(), 8u);
  Json echo = ChoiceOf(data[0]);
  EXPECT_EQ(echo.GetInt("index", -1), 1);
  EXPECT_EQ(echo.GetString("text"), "é one");
  EXPECT_EQ(echo.Find("prompt_token_ids")->Dump(), "[1,2,3]");
  EXPECT_EQ(echo.Find("logprobs")->Find("text_offset")->Dump(), "[0,0,1]");
  EXPECT_EQ(ChoiceOf(data[1]).Find("logprobs")->Find("text_offset")->Dump(), "[5]");
  EXPECT_EQ(ChoiceOf(data[1]).Find("token_ids")->Dump(), "[4]");
  EXPECT_EQ(ChoiceOf(data[2]).GetString("text"), "é one");
  EXPECT_EQ(ChoiceOf(data[4]).Find("logprobs")->Find("text_offset")->Dump(), "[9]");
}

// As the CPU pool does it, and the shard then.
template <typename Answer>
void TakeElsewhere(Answer& answer, const PromptEcho& prompt) {
  PromptEncoder encode = LongPromptEncoderOf(&answer);
  PromptTaken taken;
  std::thread([&] { taken = encode(prompt); }).join();
  taken();
}

TEST(CompletionAnswer, APromptThatIsEncodedElsewhereIsAnsweredTheSame) {
  for (const bool token_ids : {false, true}) {
    GenerationOptions options;
    options.n = 2;
    options.logprobs = true;
    options.top_logprobs = token_ids ? 1 : 0;
    options.return_token_ids = token_ids;
    CompletionAnswer here(kCompletionHead, options);
    CompletionAnswer there(kCompletionHead, options);
    for (const int32_t prompt : {0, 1}) {
      here.OnPrompt(Prompt(prompt, true));
      TakeElsewhere(there, Prompt(prompt, true));
    }
    for (CompletionAnswer* answer : {&here, &there}) {
      for (int32_t i : {0, 1, 2, 3}) {
        answer->OnDelta(Token(i, 4 + i, " two"));
        answer->OnDelta(End(i));
      }
    }
    EXPECT_GT(here.LogprobBytes(), 4 * std::string("[0,0,1,5]").size());
    EXPECT_EQ(here.LogprobBytes(), there.LogprobBytes());
    const std::string body = here.Body({});
    EXPECT_EQ(there.Body({}), body);
    const auto json = Json::Parse(body);
    ASSERT_TRUE(json.ok());
    for (const Json& choice : json->Find("choices")->as_array()) {
      EXPECT_EQ(choice.Find("logprobs")->Find("text_offset")->Dump(), "[0,0,1,5]");
      EXPECT_EQ(choice.Find("logprobs")->Find("tokens")->as_array().size(), 4u);
    }
  }
}

TEST(CompletionStreamEncoder, APromptThatIsEncodedElsewhereIsAnsweredTheSame) {
  GenerationOptions options;
  options.n = 2;
  options.logprobs = options.return_token_ids = true;
  options.top_logprobs = 1;
  CompletionStreamEncoder encoder(kCompletionHead, options);
  TakeElsewhere(encoder, Prompt(0, true));
  std::string out;
  const std::vector<TextDelta> deltas = {Token(1, 4, " two"), Token(0, 5, " 2"), End(0), End(1)};
  for (const TextDelta& delta : deltas) encoder.OnDelta(delta, &out);
  encoder.OnEnd({2, 0, 3}, &out);
  EXPECT_EQ(out, Stream(options, {Prompt(0, true)}, deltas));
}

TEST(CompletionStreamEncoder, AFailureIsOneErrorEventAndTheEnd) {
  CompletionStreamEncoder encoder(kCompletionHead, {});
  std::string out;
  TextDelta failed = End(0, FinishReason::kError);
  failed.error = Error(StatusCode::kInternal, "boom");
  encoder.OnDelta(failed, &out);
  encoder.OnEnd({}, &out);
  EXPECT_TRUE(encoder.ended());
  auto data = DataOf(out);
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(Json::Parse(data[0])->Find("error")->GetString("message"), "boom");
}

TEST(CompletionStreamEncoder, AnAbortSaysSo) {
  auto data = DataOf(Stream({}, {}, {Token(0, 1, "a"), End(0, FinishReason::kAbort)}));
  EXPECT_EQ(ChoiceOf(data[1]).GetString("finish_reason"), "abort");
}

}  // namespace
}  // namespace portico::api::openai
