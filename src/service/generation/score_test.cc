#include "service/generation/score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "engine/mock/mock_engine.h"

namespace portico {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

CompletionRequest::Prompt Text(std::string text) {
  CompletionRequest::Prompt prompt;
  prompt.text = std::move(text);
  return prompt;
}

CompletionRequest::Prompt Ids(std::vector<TokenId> ids) {
  CompletionRequest::Prompt prompt;
  prompt.ids = std::move(ids);
  prompt.is_ids = true;
  return prompt;
}

class PlanScoreTest : public testing::Test {
 protected:
  PlanScoreTest() {
    MockEngineOptions options;
    options.vocab_size = 8;
    options.context_length = 6;
    model_.engine = NewMockEngine(options);
    model_.tokenizer = *Tokenizer::FromJson(
        R"({"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,)"
        R"("decoder":null,"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"u","vocab":{"u":0,"a":1,"b":2,"c":3}}})");
    request_.query = Text("a ");
    request_.items = {Text("b"), Text("c c")};
    request_.label_token_ids = {7, 0};
  }
  void UseEngineWithoutLogProbabilities() {
    MockEngineOptions options;
    options.vocab_size = 8;
    options.context_length = 6;
    options.max_running_requests = 4;
    options.simulation = MockSimulation{.kv_cells = 100};
    model_.engine = NewMockEngine(options);
  }
  std::vector<TokenId> Prompt(size_t i) { return *PlanScore(model_, request_)->prompts[i].ids; }
  std::string FieldAtFault() {
    auto plan = PlanScore(model_, request_);
    return plan.ok() ? "nothing" : FieldOf(plan.status());
  }

  ServingModel model_;
  ScoreRequest request_;
};

TEST_F(PlanScoreTest, EveryItemIsAPromptBehindTheQueryOrBeforeIt) {
  auto plan = PlanScore(model_, request_);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->prompts.size(), 2u);
  EXPECT_EQ(plan->prompts[1].max_new_tokens, 1);
  EXPECT_EQ(*plan->logprob_ids, request_.label_token_ids);
  EXPECT_EQ(Prompt(1), (std::vector<TokenId>{1, 3, 3}));
  request_.query = Text(" a");
  request_.item_first = true;
  EXPECT_EQ(Prompt(1), (std::vector<TokenId>{3, 3, 1}));
  request_.query = Ids({5});
  request_.items = {Ids({6, 7})};
  EXPECT_EQ(Prompt(0), (std::vector<TokenId>{6, 7, 5}));
}

TEST_F(PlanScoreTest, TheQueryIsWorkWithEachItem) {
  const auto too_long = [this](size_t query, size_t items) {
    request_.query = Text(std::string(query, 'x'));
    request_.items.assign(items, Text("b"));
    StepGate gate = StepGate::OnShard();
    const auto plan = PlanScore(model_, request_, &gate);
    EXPECT_EQ(plan.ok(), !gate.too_long()) << plan.status();
    return gate.too_long();
  };
  EXPECT_FALSE(too_long(1000, 100));
  EXPECT_FALSE(too_long(10, 900));
  EXPECT_TRUE(too_long(1000, 200));
  EXPECT_TRUE(too_long(10, 1000));
}

TEST_F(PlanScoreTest, AnEngineWithoutLogProbabilitiesCannotScore) {
  UseEngineWithoutLogProbabilities();
  EXPECT_EQ(FieldAtFault(), "label_token_ids");
}

TEST_F(PlanScoreTest, WhatDoesNotFitTheModelIsNamed) {
  request_.label_token_ids = {8};
  EXPECT_EQ(FieldAtFault(), "label_token_ids");
  request_.label_token_ids.assign(2000, 1);
  EXPECT_EQ(FieldAtFault(), "label_token_ids");
  request_.label_token_ids = {};
  EXPECT_EQ(FieldAtFault(), "label_token_ids");
  request_.label_token_ids = {1};
  request_.items[1] = Text("a b c a b c");
  EXPECT_EQ(FieldAtFault(), "items[1]");
  request_.query = Ids({8});
  request_.items = {Ids({1})};
  EXPECT_EQ(FieldAtFault(), "query");
  request_.query = Ids({1});
  request_.items = {Ids({1}), Ids({8})};
  EXPECT_EQ(FieldAtFault(), "items[1]");
}

TEST_F(PlanScoreTest, AJudgeReadsEachPairInItsTemplate) {
  model_.chat_template = *ChatTemplate::FromSource(
      "{{ instruct }} {{ messages[0].content }} {{ messages[1].content }}", {});
  model_.joins_pairs = true;
  model_.judge = JudgeTokens{5, 4};
  RerankRequest request;
  request.query = "a";
  request.documents = {"b", "c c"};
  const auto plan = PlanJudgements(model_, request);
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  EXPECT_EQ(*plan->logprob_ids, (std::vector<TokenId>{5, 4}));
  ASSERT_EQ(plan->prompts.size(), 2u);
  EXPECT_EQ(*plan->prompts[1].ids, (std::vector<TokenId>{1, 3, 3}));
  request.instruction = "b";
  EXPECT_EQ(*PlanJudgements(model_, request)->prompts[1].ids, (std::vector<TokenId>{2, 1, 3, 3}));

  request.documents = {"b", ""};
  EXPECT_EQ(FieldOf(PlanJudgements(model_, request).status()), "documents");
  request.documents = {"b", "c c c c c"};
  EXPECT_EQ(FieldOf(PlanJudgements(model_, request).status()), "documents[1]");
  request.truncate = 3;
  EXPECT_EQ(FieldOf(PlanJudgements(model_, request).status()), "truncate_prompt_tokens");
}

// All were `documents`.
TEST_F(PlanScoreTest, TheFieldThatAJudgeCannotTakeIsNamed) {
  model_.chat_template = *ChatTemplate::FromSource(
      "{{ instruct }} {{ messages[0].content }} {{ messages[1].content }}", {});
  model_.joins_pairs = true;
  model_.judge = JudgeTokens{5, 4};
  model_.max_request_cost = 10000;
  const auto field_of = [this](std::string query, std::string instruction, std::string document) {
    RerankRequest request;
    request.query = std::move(query);
    request.instruction = std::move(instruction);
    request.documents = {"b", std::move(document)};
    return FieldOf(PlanJudgements(model_, request).status());
  };
  EXPECT_EQ(field_of("a", "b", "c"), "");
  const std::string words = "a a a a a a";
  EXPECT_EQ(field_of(words, "b", "c"), "query");
  EXPECT_EQ(field_of("a", words, "c"), "instruct");
  EXPECT_EQ(field_of("a", "b", words), "documents[1]");
  const std::string costly(6000, 'a');
  EXPECT_EQ(field_of(costly, "b", "c"), "query");
  EXPECT_EQ(field_of("a", costly, "c"), "instruct");
  EXPECT_EQ(field_of("a", "b", costly), "documents");
  UseEngineWithoutLogProbabilities();
  EXPECT_EQ(field_of("a", "b", "c"), "model");
}

TEST(LogOddsTest, AreTheDifferenceOfTheLogarithms) {
  EXPECT_NEAR(LogOdds({{0.75, 0.25}})[0], std::log(3.0f), 1e-6);
  EXPECT_NEAR(LogOdds({{1.0, 0.0}})[0], 690.8, 0.1);
  EXPECT_EQ(LogOdds({{0.0, 0.0}})[0], 0.0f);
}

TEST(ScoresOfTest, ScoresAreProbabilitiesOrTheLabelsSoftmax) {
  const std::vector<float> logprobs = {std::log(0.1f), std::log(0.3f)};
  EXPECT_NEAR(ScoresOf(logprobs, false)[1], 0.3, 1e-6);
  EXPECT_NEAR(ScoresOf(logprobs, true)[1], 0.75, 1e-6);
  EXPECT_EQ(ScoresOf(std::vector<float>{kImpossible, -1000}, true),
            (std::vector<double>{0.0, 1.0}));
  EXPECT_EQ(ScoresOf(std::vector<float>{kImpossible}, true), std::vector<double>{0.0});
}

// Odds were taken of the label that a worker had left out, which ended the process.
TEST(ScoreBoardTest, ALabelThatTheEngineLeavesOutIsAnError) {
  for (const size_t told : {0u, 1u, 3u}) {
    ScoreBoard board(1, 2, true);
    TextDelta delta;
    delta.finish = FinishReason::kLength;
    delta.logprobs.emplace_back().of_ids.resize(told);
    board.OnDelta(delta);
    EXPECT_EQ(board.status().code(), StatusCode::kInternal) << told;
  }
  ScoreBoard board(1, 2, true);
  TextDelta delta;
  delta.logprobs.emplace_back().of_ids.resize(2);
  board.OnDelta(delta);
  EXPECT_TRUE(board.status().ok());
  EXPECT_EQ(board.scores()[0].size(), 2u);
}

TEST(ScoreBoardTest, AnItemThatFailsOrIsAbortedIsNoScore) {
  for (const FinishReason finish : {FinishReason::kError, FinishReason::kAbort}) {
    ScoreBoard board(1, 2, false);
    TextDelta delta;
    delta.finish = finish;
    delta.error = Error(StatusCode::kInternal, "broken");
    EXPECT_TRUE(board.status().ok());
    board.OnDelta(delta);
    EXPECT_FALSE(board.status().ok());
  }
}

}  // namespace
}  // namespace portico
