#include "service/generation/generation.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/generation/generation_for_test.h"
#include "tokenizer/decode/stop_matcher.h"

namespace portico {
namespace {

class GenerationTest : public GenerationFixture {};

// A stream that was aborted in the queue, with logprob_start_len 2, ended the process: the report of the prompt left
// out the first of no log-probabilities.
TEST_F(GenerationTest, AStreamMayEndBeforeItsPromptIsComputedWhateverItAskedFor) {
  for (const FinishReason reason :
       {FinishReason::kAbort, FinishReason::kError, FinishReason::kLength, FinishReason::kStop}) {
    for (const int32_t start : {-1, 0, 1, 3}) {
      engine_->requests.clear();
      sink_ = {};
      GenerationPlan plan = Plan(1);
      plan.options.logprobs = true;
      plan.options.top_logprobs = 2;
      plan.options.stop = {"x"};
      plan.options.return_token_ids = true;
      plan.echo = true;
      plan.prompt_logprobs_start = start;
      plan.logprob_ids = std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{1});
      Start(std::move(plan));
      End(0, reason);
      ASSERT_TRUE(sink_.ended);
      ASSERT_EQ(sink_.prompts.size(), 1u);
      EXPECT_EQ(sink_.prompts[0].logprobs.size(), start < 0 ? 0u : 1u);
      ASSERT_EQ(sink_.deltas.size(), 1u);
      EXPECT_EQ(sink_.deltas[0].finish, reason);
      EXPECT_EQ(sink_.total.prompt_tokens, 4);
    }
  }
}

TEST_F(GenerationTest, ChoicesShareTheirParametersAndTellTheShard) {
  GenerationPlan plan = Plan(3);
  const SamplingParams* shared = plan.sampling.get();
  Start(std::move(plan));
  ASSERT_EQ(engine_->requests.size(), 3u);
  for (const GenerateRequest& request : engine_->requests) {
    EXPECT_EQ(request.sampling.get(), shared);
    EXPECT_EQ(request.max_new_tokens, 9);
    EXPECT_EQ(request.extras, nullptr);
  }
  OnShard([&] { generation_->Abort(); });
  EXPECT_EQ(engine_->aborted.size(), 3u);
  EXPECT_EQ(engine_->aborted_on, 0);
}

TEST_F(GenerationTest, NoTwoAnswersOfAPairsRequestMeetInTheSameRoom) {
  // Several prompts with one room were refused.
  GenerationPlan plan = Plan(2);
  plan.prompts.push_back(plan.prompts.front());
  plan.prompts.push_back(plan.prompts.front());
  auto extras = std::make_shared<RequestExtras>();
  extras->bootstrap_host = "h";
  extras->bootstrap_room = 70;
  plan.extras = std::move(extras);
  Start(std::move(plan));
  std::vector<int64_t> rooms;
  for (const GenerateRequest& request : engine_->requests) {
    EXPECT_EQ(request.extras->bootstrap_host, "h");
    rooms.push_back(*request.extras->bootstrap_room +
                    request.choice * request.extras->bootstrap_room_step);
  }
  EXPECT_EQ(rooms, (std::vector<int64_t>{70, 73, 71, 74, 72, 75}));
}

TEST_F(GenerationTest, AnAnswerThatContinuesItsPromptKeepsItsFirstSpace) {
  UseSentencePieceTokens();
  Start(PlanOf({1, 3}, /*continues=*/true));
  Answer({4, 3}, FinishReason::kLength);
  EXPECT_EQ(Text(), " upon once");
}

TEST_F(GenerationTest, AnAnswerThatBeginsAMessageBeginsWithoutTheSpaceOfItsTokenizer) {
  UseSentencePieceTokens();
  Start(PlanOf({1, 3}, /*continues=*/false));
  Answer({4, 3}, FinishReason::kLength);
  EXPECT_EQ(Text(), "upon once");
}

// It ran to the length limit.
TEST_F(GenerationTest, AStopStringIsFoundInASpecialTokenThatIsNotShown) {
  UseSentencePieceTokens();
  for (const bool keep : {false, true}) {
    engine_->requests.clear();
    sink_ = {};
    GenerationPlan plan = PlanOf({1, 3}, true);
    plan.stops = std::make_shared<const StopStrings>(std::vector<std::string>{"<|end|>user"});
    plan.options.no_stop_trim = keep;
    Start(std::move(plan));
    Answer({4, 2, 3, 2, 5, 3}, FinishReason::kLength);
    EXPECT_EQ(Text(), keep ? " upon onceuser" : " upon once");
    EXPECT_EQ(sink_.deltas.back().finish, FinishReason::kStop);
    EXPECT_EQ(sink_.deltas.back().matched_stop.text, "<|end|>user");
    ASSERT_TRUE(sink_.ended);
    EXPECT_EQ(sink_.total.completion_tokens, 5);
    ASSERT_NE(engine_->requests[0].extras, nullptr) << "engines that look for them too are told";
    EXPECT_EQ(engine_->requests[0].extras->stop, std::vector<std::string>{"<|end|>user"});
  }
}

// As in SGLang, which looks at tokens first.
TEST_F(GenerationTest, AStopTokenEndsTheAnswerBeforeAStopStringThatSpellsIt) {
  UseSentencePieceTokens();
  GenerationPlan plan = PlanOf({1, 3}, true);
  plan.stops = std::make_shared<const StopStrings>(std::vector<std::string>{"<|end|>"});
  plan.options.no_stop_trim = true;
  plan.options.skip_special_tokens = false;
  Start(std::move(plan));
  Answer({4, 2}, FinishReason::kStop, /*matched=*/2);
  EXPECT_EQ(Text(), " upon<|end|>");
  EXPECT_EQ(sink_.deltas.back().matched_stop.token, 2);
  EXPECT_EQ(sink_.deltas.back().matched_stop.text, "");
}

TEST_F(GenerationTest, ParsersSeeTheMarkersAndStopStringsSeeEverySpecialToken) {
  UseSentencePieceTokens();
  const absl::flat_hash_set<TokenId> markers = {1};
  auto output = std::make_shared<OutputPlan>();
  output->markers = &markers;
  GenerationPlan plan = PlanOf({3}, true);
  plan.output = output;
  plan.stops = std::make_shared<const StopStrings>(std::vector<std::string>{"<|end|>user"});
  Start(std::move(plan));
  Answer({4, 1, 2, 3, 2, 5}, FinishReason::kLength);
  EXPECT_EQ(Text(), " upon<s> once");
  EXPECT_EQ(sink_.deltas.back().matched_stop.text, "<|end|>user");
}

TEST_F(GenerationTest, LogprobsSpellWhatATokenAddsWhereItStands) {
  UseSentencePieceTokens();
  for (const bool continues : {true, false}) {
    engine_->requests.clear();
    sink_ = {};
    GenerationPlan plan = PlanOf({1, 3}, continues);
    plan.options.logprobs = true;
    plan.prompt_logprobs_start = 0;
    Start(std::move(plan));
    std::vector<TokenDelta> batch(1);
    batch[0].stream = engine_->requests[0].stream;
    batch[0].prompt_logprobs.resize(1);
    batch[0].prompt_logprobs[0].chosen = {3, -1.0f};
    for (TokenId id : {3, 2, 6}) {
      batch[0].tokens.push_back(id);
      PositionLogprobs& position = batch[0].logprobs.emplace_back();
      position.chosen = {id, -0.5f};
      position.top = {{3, -0.5f}, {7, -0.75f}};
    }
    batch[0].finish = FinishReason::kLength;
    hub_.Deliver(std::move(batch));
    OnShard([] {});
    ASSERT_EQ(sink_.prompts.size(), 1u);
    ASSERT_EQ(sink_.prompts[0].logprobs.size(), 2u);
    EXPECT_EQ(sink_.prompts[0].logprobs[0].chosen.text, "<s>");
    EXPECT_EQ(sink_.prompts[0].logprobs[1].chosen.text, "once");
    std::vector<TextPositionLogprobs> positions;
    for (TextDelta& delta : sink_.deltas) {
      for (TextPositionLogprobs& position : delta.logprobs) positions.push_back(position);
    }
    ASSERT_EQ(positions.size(), 3u);
    const std::string first = continues ? " once" : "once";
    EXPECT_EQ(positions[0].chosen.text, first);
    EXPECT_EQ(positions[0].chosen.bytes, first);
    EXPECT_EQ(positions[0].top[0].text, first);
    EXPECT_EQ(positions[0].top[1].text, "once");
    EXPECT_EQ(positions[1].chosen.text, "<|end|>");
    EXPECT_TRUE(positions[1].hidden);
    EXPECT_FALSE(positions[0].hidden);
    EXPECT_EQ(positions[1].top[0].text, " once") << "another token stands before it";
    EXPECT_EQ(positions[2].chosen.text, "bytes:\\xf0");
    EXPECT_EQ(positions[2].chosen.bytes, "\xF0");
  }
}

TEST_F(GenerationTest, AnEngineOnTheShardDeliversWithoutAPost) {
  Start(Plan(1));
  OnShard([&] {
    std::vector<TokenDelta> batch(1);
    batch[0].stream = engine_->requests[0].stream;
    batch[0].tokens.push_back(2);
    batch[0].finish = FinishReason::kLength;
    hub_.DeliverHere(std::move(batch));
    EXPECT_TRUE(sink_.ended);
  });
  EXPECT_EQ(sink_.total.completion_tokens, 1);
}

// A video of 64 MB took its bytes as long as its answer did.
TEST_F(GenerationTest, WhatTheEngineHasIsNotKeptForTheAnswer) {
  GenerationPlan plan = Plan(2);
  auto extras = std::make_shared<const RequestExtras>();
  const std::weak_ptr<const RequestExtras> kept = extras;
  plan.extras = std::move(extras);
  Start(std::move(plan));
  EXPECT_FALSE(kept.expired());
  for (GenerateRequest& request : engine_->requests) request.extras = nullptr;
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace portico
