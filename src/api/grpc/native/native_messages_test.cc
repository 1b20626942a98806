#include "api/grpc/native/native_messages.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>

#include "api/common/long_prompt.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;
using Form = NativeMessages::Form;

NativePlan Plan(bool stream, int32_t n = 1) {
  NativePlan plan;
  GenerationPlan prompt;
  prompt.options.rid = "r\"1";
  prompt.prompts.push_back({std::make_shared<const std::vector<TokenId>>(2, 5), "", false, 8});
  plan.prompts.push_back(std::move(prompt));
  plan.n = n;
  plan.stream = stream;
  return plan;
}

TextDelta Delta(std::string text, TokenId token, int32_t completion, int32_t index = 0) {
  TextDelta delta;
  delta.text = std::move(text);
  delta.tokens.push_back(token);
  delta.index = index;
  delta.usage = {2, 1, completion};
  return delta;
}

TextDelta Last(TextDelta delta) {
  delta.finish = FinishReason::kLength;
  return delta;
}

template <typename Message>
Message Parsed(const std::string& bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  EXPECT_TRUE(message.GetReflection()->GetUnknownFields(message).empty());
  return message;
}

TEST(NativeMessages, TheEndTellsWhatTheEngineKnowsOfTheAnswer) {
  // It said null, null, 0 and the version at the start, whatever the engine had said.
  NativeMessages messages(Plan(true), Form::kText, /*cumulative=*/false);
  std::string bytes;
  ASSERT_TRUE(messages.OnDelta(Delta("Hi", 300, 1), &bytes));
  bytes.clear();
  TextDelta last = Last(Delta("!", 301, 2));
  last.usage.reasoning_tokens = 1;
  auto extras = std::make_unique<DeltaExtras>();
  extras->data_parallel_rank = 3;
  extras->cached_on_device = 1;
  extras->cached_in_storage = 4;
  extras->storage_backend = "file";
  extras->weight_versions = {{"a", 0, 1}, {"b", 1, 2}};
  last.extras = std::move(extras);
  last.usage.media_tokens = {0, 0, 7};
  ASSERT_TRUE(messages.OnDelta(last, &bytes));
  const auto meta = Parsed<pb::TextGenerateResponse>(bytes).meta_info();
  EXPECT_EQ(meta.at("dp_rank"), "3");
  EXPECT_EQ(meta.at("reasoning_tokens"), "1");
  EXPECT_EQ(meta.at("audio_tokens"), "7");
  EXPECT_EQ(meta.count("image_tokens"), 0u);
  EXPECT_EQ(meta.at("cached_tokens_details"),
            R"({"device":1,"host":0,"storage":4,"storage_backend":"file"})");
  EXPECT_EQ(meta.at("weight_versions"),
            R"([{"version":"a","start":0,"end":1},{"version":"b","start":1,"end":2}])");
}

TEST(NativeMessages, StreamsWhatIsNewWithAllMetaInfo) {
  NativeMessages messages(Plan(true), Form::kText, /*cumulative=*/false);
  std::string bytes;
  ASSERT_TRUE(messages.OnDelta(Delta("Hi", 300, 1), &bytes));
  auto first = Parsed<pb::TextGenerateResponse>(bytes);
  EXPECT_EQ(first.text(), "Hi");
  EXPECT_FALSE(first.finished());
  EXPECT_EQ(first.meta_info().at("id"), R"("r\"1")");
  EXPECT_EQ(first.meta_info().at("finish_reason"), "null");
  EXPECT_EQ(first.meta_info().at("prompt_tokens"), "2");
  EXPECT_EQ(first.meta_info().at("cached_tokens"), "1");
  EXPECT_EQ(first.meta_info().at("completion_tokens"), "1");
  EXPECT_EQ(first.meta_info().at("weight_version"), "\"default\"");
  EXPECT_EQ(first.meta_info().count("response_sent_to_client_ts"), 1u);
  EXPECT_EQ(first.meta_info().count("index"), 0u);

  bytes.clear();
  ASSERT_TRUE(messages.OnDelta(Last(Delta(" you", 301, 2)), &bytes));
  auto last = Parsed<pb::TextGenerateResponse>(bytes);
  EXPECT_EQ(last.text(), " you");
  EXPECT_TRUE(last.finished());
  EXPECT_TRUE(messages.ended());
  EXPECT_EQ(last.meta_info().at("finish_reason"), R"({"type":"length","length":2})");
  EXPECT_EQ(last.meta_info().count("e2e_latency"), 1u);
  EXPECT_EQ(last.meta_info().count("response_sent_to_client_ts"), 0u);
}

TEST(NativeMessages, RepeatsEverythingInTheCumulativeForm) {
  NativeMessages messages(Plan(true), Form::kIdsAndText, /*cumulative=*/true);
  std::string bytes;
  messages.OnDelta(Delta("Hi", 300, 1), &bytes);
  bytes.clear();
  messages.OnDelta(Last(Delta(" you", 70000, 2)), &bytes);
  auto last = Parsed<pb::GenerateResponse>(bytes);
  EXPECT_EQ(last.output_ids(0), 300);
  EXPECT_EQ(last.output_ids(1), 70000);
  EXPECT_EQ(last.text(), "Hi you");
}

TEST(NativeMessages, ACumulativeMessageThatIsOutOfDateIsNotGiven) {
  for (const bool cumulative : {true, false}) {
    NativeMessages messages(Plan(true), Form::kIdsAndText, cumulative);
    TextDelta first = Delta("Hi", 300, 1);
    first.more_at_once = true;
    auto extras = std::make_unique<DeltaExtras>();
    extras->data_parallel_rank = 3;
    first.extras = std::move(extras);
    std::string bytes;
    EXPECT_EQ(messages.OnDelta(first, &bytes), !cumulative);
    EXPECT_EQ(bytes.empty(), cumulative);
    bytes.clear();
    ASSERT_TRUE(messages.OnDelta(Delta(" you", 301, 2), &bytes));
    const auto second = Parsed<pb::GenerateResponse>(bytes);
    EXPECT_EQ(second.text(), cumulative ? "Hi you" : " you");
    EXPECT_EQ(second.meta_info().at("dp_rank"), "3");
    EXPECT_EQ(second.meta_info().at("completion_tokens"), "2");
    EXPECT_EQ(second.meta_info().count("response_sent_to_client_ts"), cumulative ? 1u : 0u);
  }
}

TEST(NativeMessages, GivesOneMessageAChoiceWhereNothingStreams) {
  NativeMessages messages(Plan(false, 2), Form::kIds, /*cumulative=*/false);
  std::string bytes;
  EXPECT_FALSE(messages.OnDelta(Delta("a", 1, 1, 0), &bytes));
  EXPECT_FALSE(messages.OnDelta(Delta("b", 2, 1, 1), &bytes));
  ASSERT_TRUE(messages.OnDelta(Last(Delta("c", 3, 2, 1)), &bytes));
  auto second = Parsed<pb::GenerateResponse>(bytes);
  EXPECT_EQ(second.output_ids_size(), 2);
  EXPECT_EQ(second.output_ids(1), 3);
  EXPECT_EQ(second.text(), "");
  EXPECT_EQ(second.meta_info().at("index"), "1");
  EXPECT_FALSE(second.finished());
  bytes.clear();
  ASSERT_TRUE(messages.OnDelta(Last(Delta("d", 4, 2, 0)), &bytes));
  EXPECT_TRUE(Parsed<pb::GenerateResponse>(bytes).finished());
}

TEST(NativeMessages, CarriesLogprobsAsJson) {
  NativePlan plan = Plan(true);
  plan.prompts[0].options.logprobs = true;
  plan.prompts[0].options.top_logprobs = 1;
  NativeMessages messages(plan, Form::kText, /*cumulative=*/false);
  PromptEcho echo;
  echo.logprobs.emplace_back().chosen.token = 5;
  messages.OnPrompt(echo);
  TextDelta delta = Delta("x", 9, 1);
  TextPositionLogprobs& position = delta.logprobs.emplace_back();
  position.chosen = {9, "x", "x", -0.5f};
  position.top.push_back({8, "y", "y", -0.25f});
  std::string bytes;
  messages.OnDelta(delta, &bytes);
  auto meta = Parsed<pb::TextGenerateResponse>(bytes).meta_info();
  EXPECT_EQ(meta.at("input_token_logprobs"), "[[null,5,null]]");
  EXPECT_EQ(meta.at("output_token_logprobs"), "[[-0.5,9,null]]");
  EXPECT_EQ(meta.at("output_top_logprobs"), "[[[-0.25,8,null]]]");
  bytes.clear();
  messages.OnDelta(Last(Delta("", 9, 2)), &bytes);
  meta = Parsed<pb::TextGenerateResponse>(bytes).meta_info();
  EXPECT_EQ(meta.at("input_token_logprobs"), "[]");
  EXPECT_EQ(meta.at("output_token_logprobs_length"), "0");
}

TEST(NativeMessages, APromptThatIsEncodedElsewhereIsAnsweredTheSame) {
  NativePlan plan = Plan(true, 2);
  plan.prompts[0].options.logprobs = true;
  plan.prompts[0].options.top_logprobs = 1;
  plan.return_text_in_logprobs = true;
  PromptEcho echo;
  echo.logprobs.resize(2);
  echo.logprobs[0].chosen = {5, "a", "a", std::nullopt};
  echo.logprobs[1].chosen = {6, "b", "b", -0.5f};
  echo.logprobs[1].top.push_back({8, "y", "y", -0.25f});
  NativeMessages messages(plan, Form::kText, /*cumulative=*/false);
  PromptEncoder encode = LongPromptEncoderOf(&messages);
  PromptTaken taken;
  std::thread([&] { taken = encode(echo); }).join();
  taken();
  for (const int32_t index : {0, 1}) {
    std::string bytes;
    messages.OnDelta(Delta("x", 9, 1, index), &bytes);
    auto meta = Parsed<pb::TextGenerateResponse>(bytes).meta_info();
    EXPECT_EQ(meta.at("input_token_logprobs"), R"([[null,5,"a"],[-0.5,6,"b"]])");
    EXPECT_EQ(meta.at("input_top_logprobs"), R"([null,[[-0.25,8,"y"]]])");
    bytes.clear();
    messages.OnDelta(Last(Delta("", 9, 2, index)), &bytes);
    meta = Parsed<pb::TextGenerateResponse>(bytes).meta_info();
    EXPECT_EQ(meta.at("input_token_logprobs"), "[]");
    EXPECT_EQ(meta.at("input_top_logprobs"), "[]");
  }
}

}  // namespace
}  // namespace portico::api::rpc
