#include "api/sglang/generate_answer.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "text/json.h"

namespace portico::api::sglang {
namespace {

NativePlan PlanOfTwo(bool stream) {
  NativePlan plan;
  for (const char* rid : {"a", "b"}) {
    GenerationPlan prompt;
    prompt.options.rid = rid;
    prompt.options.logprobs = true;
    prompt.options.top_logprobs = 1;
    prompt.options.return_token_ids = true;
    prompt.logprob_ids = std::make_shared<const std::vector<TokenId>>(1, 3);
    prompt.prompts.push_back({std::make_shared<const std::vector<TokenId>>(2, 5), "", false, 8});
    plan.prompts.push_back(std::move(prompt));
  }
  plan.n = 1;
  plan.is_list = true;
  plan.stream = stream;
  plan.return_text_in_logprobs = true;
  return plan;
}

PromptEcho EchoOf(TokenId token) {
  PromptEcho echo;
  echo.tokens = {token, token + 1};
  echo.logprobs.resize(2);
  echo.logprobs[0].chosen = {token, "x", "x", std::nullopt};
  echo.logprobs[1].chosen = {token + 1, "y", "y", -0.5f};
  echo.logprobs[1].top.push_back({8, "z", "z", -0.25f});
  echo.logprobs[1].of_ids.push_back({3, "w", "w", -2.0f});
  return echo;
}

TextDelta LastToken(TokenId token) {
  TextDelta delta;
  delta.text = "t";
  delta.tokens.push_back(token);
  delta.logprobs.emplace_back().chosen = {token, "t", "t", -1.0f};
  delta.finish = FinishReason::kLength;
  delta.usage = {2, 0, 1};
  return delta;
}

TEST(GenerateAnswer, APromptThatIsEncodedElsewhereIsAnsweredTheSame) {
  for (const bool stream : {false, true}) {
    GenerateAnswer answer(PlanOfTwo(stream), /*cumulative=*/false);
    answer.OnPrompt(0, EchoOf(5));
    std::thread([&, form = answer.prompt_form(1)] {
      answer.TakePrompt(1, form(EchoOf(5)));
    }).join();
    const size_t without = answer.LogprobBytes();
    EXPECT_GT(without, 0u);
    std::vector<std::string> metas;
    for (const size_t prompt : {0u, 1u}) {
      TextDelta delta = LastToken(9);
      const size_t index = answer.OnDelta(prompt, delta);
      if (!stream) continue;
      std::string event;
      answer.AppendEvent(index, &event);
      const auto json = Json::Parse(event.substr(6));
      ASSERT_TRUE(json.ok());
      EXPECT_EQ(json->Find("prompt_token_ids")->Dump(), "[5,6]");
      metas.push_back(json->Find("meta_info")->Dump());
    }
    if (!stream) {
      EXPECT_GT(answer.LogprobBytes(), without);
      const auto json = Json::Parse(answer.Body());
      ASSERT_TRUE(json.ok());
      for (const Json& one : json->as_array()) {
        EXPECT_EQ(one.Find("prompt_token_ids")->Dump(), "[5,6]");
        metas.push_back(one.Find("meta_info")->Dump());
      }
    }
    ASSERT_EQ(metas.size(), 2u);
    for (const std::string& meta : metas) {
      for (const char* part : {R"("input_token_logprobs":[[null,5,"x"],[-0.5,6,"y"]])",
                               R"("output_token_logprobs":[[-1.0,9,"t"]])",
                               R"("input_top_logprobs":[null,[[-0.25,8,"z"]]])",
                               R"("input_token_ids_logprobs":[null,[[-2.0,3,"w"]]])"}) {
        EXPECT_NE(meta.find(part), std::string::npos) << part << " in " << meta;
      }
    }
  }
}

// Each of them repeated the prompt.
TEST(GenerateAnswer, ACumulativeEventThatIsOutOfDateIsNotDue) {
  for (const bool cumulative : {true, false}) {
    GenerateAnswer answer(PlanOfTwo(/*stream=*/true), cumulative);
    answer.OnPrompt(0, EchoOf(5));
    TextDelta first = LastToken(9);
    first.finish = FinishReason::kNone;
    first.more_at_once = true;
    const size_t index = answer.OnDelta(0, first);
    EXPECT_EQ(answer.IsDue(index), !cumulative);
    TextDelta second = LastToken(10);
    second.finish = FinishReason::kNone;
    answer.OnDelta(0, second);
    ASSERT_TRUE(answer.IsDue(index));
    std::string event;
    answer.AppendEvent(index, &event);
    const auto json = Json::Parse(event.substr(6));
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(json->Find("output_ids")->Dump(), "[9,10]");
    EXPECT_NE(event.find(R"("input_token_logprobs":[[null,5,"x"],[-0.5,6,"y"]])"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace portico::api::sglang
