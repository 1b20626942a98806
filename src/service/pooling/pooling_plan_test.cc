#include "service/pooling/pooling_plan.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/mock/mock_engine.h"
#include "service/idle_engine_for_test.h"

namespace portico {
namespace {

using Ids = std::vector<TokenId>;
using Types = std::vector<uint8_t>;

// BERT's frame around words that are letters; 2 is [CLS], 3 is [SEP].
constexpr char kTokenizer[] =
    R"({"version":"1.0","added_tokens":[],"normalizer":null,"decoder":null,)"
    R"("pre_tokenizer":{"type":"Whitespace"},"post_processor":{"type":"TemplateProcessing",)"
    R"("single":[{"SpecialToken":{"id":"C","type_id":0}},{"Sequence":{"id":"A","type_id":0}},)"
    R"({"SpecialToken":{"id":"S","type_id":0}}],)"
    R"("pair":[{"SpecialToken":{"id":"C","type_id":0}},{"Sequence":{"id":"A","type_id":0}},)"
    R"({"SpecialToken":{"id":"S","type_id":0}},{"Sequence":{"id":"B","type_id":1}},)"
    R"({"SpecialToken":{"id":"S","type_id":1}}],)"
    R"("special_tokens":{"C":{"id":"C","ids":[2],"tokens":["C"]},)"
    R"("S":{"id":"S","ids":[3],"tokens":["S"]}}},"model":{"type":"WordLevel","unk_token":"u",)"
    R"("vocab":{"u":0,"pad":1,"C":2,"S":3,"a":4,"b":5,"c":6}}})";

CompletionRequest::Prompt Text(std::string text) {
  CompletionRequest::Prompt prompt;
  prompt.text = std::move(text);
  return prompt;
}

CompletionRequest::Prompt List(Ids ids) {
  CompletionRequest::Prompt prompt;
  prompt.ids = std::move(ids);
  prompt.is_ids = true;
  return prompt;
}

std::string NextName() {
  static int count = 0;
  return "made" + std::to_string(++count);
}

class PoolingPlanTest : public testing::Test {
 protected:
  PoolingPlanTest() {
    MockEngineOptions options;
    options.vocab_size = 8;
    options.context_length = 6;
    options.task = ModelTask::kClassify;
    model_.engine = NewMockEngine(options);
    model_.tokenizer = *Tokenizer::FromJson(kTokenizer);
    request_.input_field = "input";
  }

  StatusOr<PoolingPlan> Plan() const { return PoolingPlanner{model_, 4}.PlanInputs(request_); }
  std::string FieldAtFault() const {
    const auto plan = Plan();
    return plan.ok() ? "nothing" : FieldOf(plan.status());
  }
  std::string Message() const { return std::string(MessageOf(Plan().status())); }
  Ids IdsOf(size_t i) const { return *Plan()->texts[i].tokens; }

  ServingModel model_;
  EmbeddingRequest request_;
};

TEST_F(PoolingPlanTest, APromptStandsBeforeEachTextThatAsksForItOrNamesNone) {
  model_.prompts.texts = {{"query", "a "}, {"document", ""}};
  request_.inputs = {Text("b"), List({6, 6})};
  EXPECT_EQ(IdsOf(0), (Ids{2, 5, 3}));
  model_.prompts.default_name = "query";
  EXPECT_EQ(IdsOf(0), (Ids{2, 4, 5, 3}));
  EXPECT_EQ(IdsOf(1), (Ids{6, 6}));
  request_.prompt_name = "query";
  EXPECT_EQ(FieldAtFault(), "prompt_name");  // the ids cannot have one
  request_.inputs = {Text("b")};
  EXPECT_EQ(IdsOf(0), (Ids{2, 4, 5, 3}));
  request_.prompt_name = "";
  EXPECT_EQ(IdsOf(0), (Ids{2, 5, 3}));
  request_.prompt_name = "passage";
  EXPECT_EQ(FieldAtFault(), "prompt_name");
  EXPECT_EQ(Message(), "the model has no prompt 'passage'; it has query, document");
}

TEST_F(PoolingPlanTest, TextsGetSpecialTokensAndIdsStayAsTheyAre) {
  request_.inputs = {Text("a b"), List({6, 6})};
  EXPECT_EQ(IdsOf(0), (Ids{2, 4, 5, 3}));
  EXPECT_EQ(IdsOf(1), (Ids{6, 6}));
}

TEST_F(PoolingPlanTest, ALongTextIsRefusedWithBothNumbers) {
  request_.is_list = true;
  request_.inputs = {Text("a"), Text("a b c a b")};
  EXPECT_EQ(FieldAtFault(), "input");
  EXPECT_NE(Message().find("input[1] has 7 tokens and the model takes at most 6"),
            std::string::npos)
      << Message();
}

TEST_F(PoolingPlanTest, ALongTextIsCutWhereAskedForAndKeepsItsLastSpecialToken) {
  request_.inputs = {Text("a b c a b"), List({4, 4, 4, 4, 4, 4, 5}), Text("a")};
  request_.truncate = kTruncateToLimit;
  EXPECT_EQ(IdsOf(0), (Ids{2, 4, 5, 6, 4, 3}));
  EXPECT_EQ(IdsOf(1), Ids(6, 4));
  EXPECT_EQ(IdsOf(2), (Ids{2, 4, 3}));
  request_.truncate = 4;
  EXPECT_EQ(IdsOf(0), (Ids{2, 4, 5, 3}));
  request_.truncate = 7;
  EXPECT_EQ(FieldAtFault(), "truncate_prompt_tokens");
  request_.truncate = 1;
  EXPECT_EQ(FieldAtFault(), "truncate_prompt_tokens");
}

TEST_F(PoolingPlanTest, WhatIsWrongIsNamed) {
  request_.inputs = {List({8})};
  EXPECT_EQ(FieldAtFault(), "input");
  request_.inputs.assign(5, Text("a"));
  EXPECT_EQ(FieldAtFault(), "input");
  EXPECT_NE(Message().find("at most 4"), std::string::npos);
  request_.inputs = {Text("a"), Text("b")};
  request_.rid.is_list = true;
  request_.rid.values = {"x"};
  EXPECT_EQ(FieldAtFault(), "rid");
}

TEST_F(PoolingPlanTest, AdaptersAreForEnginesThatHaveThem) {
  request_.inputs = {Text("a"), Text("b")};
  request_.lora_path.is_list = true;
  request_.lora_path.values = {"", ""};
  EXPECT_TRUE(Plan().ok());
  request_.lora_path.values = {"", "x"};
  EXPECT_EQ(FieldAtFault(), "lora_path");
  request_.lora_path.values = {""};
  EXPECT_EQ(FieldAtFault(), "lora_path");
}

TEST_F(PoolingPlanTest, ARankIsOneOfTheEngines) {
  request_.inputs = {Text("a"), Text("b")};
  EXPECT_EQ(Plan()->texts[1].data_parallel_rank, -1);
  request_.data_parallel_rank = 1;
  EXPECT_EQ(FieldAtFault(), "data_parallel_rank");
  request_.data_parallel_rank = 0;  // the only one, so the engine need not be asked for it
  EXPECT_EQ(Plan()->texts[1].data_parallel_rank, -1);
  EngineInfo info = model_.engine->info();
  info.can.pooling_ranks = 2;
  model_.engine = std::make_unique<IdleEngine>(std::move(info));
  EXPECT_EQ(Plan()->texts[1].data_parallel_rank, 0);
  request_.data_parallel_rank = 1;
  EXPECT_EQ(Plan()->texts[0].data_parallel_rank, 1);
  request_.data_parallel_rank = 2;
  EXPECT_EQ(FieldAtFault(), "data_parallel_rank");
}

TEST_F(PoolingPlanTest, TokenTypesComeWithTheIds) {
  request_.inputs = {List({4, 5})};
  request_.token_types = {{0, 1}};
  EXPECT_EQ(Plan()->texts[0].token_types, (Types{0, 1}));
  for (const std::vector<Types>& bad : std::vector<std::vector<Types>>{{{0}}, {{0, 2}}, {{}, {}}}) {
    request_.token_types = bad;
    EXPECT_EQ(FieldAtFault(), "token_type_ids");
  }
  request_.inputs = {Text("a")};
  for (const Types& types : {Types{0}, Types{}}) {
    request_.token_types = {types};
    EXPECT_EQ(FieldAtFault(), "token_type_ids");
  }
}

TEST_F(PoolingPlanTest, RidsAreTheClientsOrOneForEveryText) {
  request_.inputs = {Text("a"), Text("b")};
  request_.is_list = true;
  EXPECT_TRUE(Plan()->rids.empty());
  request_.rid.values = {"x"};
  EXPECT_EQ(Plan()->rids, (std::vector<std::string>{"x"}));
  const PoolingPlanner planner{model_, 4};
  EXPECT_EQ(planner.PlanNamedInputs(request_, NextName)->rids,
            (std::vector<std::string>{"x_0", "x_1"}));
  request_.rid = {};
  EXPECT_EQ(planner.PlanNamedInputs(request_, NextName)->rids.size(), 2u);
}

class PairPlanTest : public PoolingPlanTest {
 protected:
  StatusOr<PoolingPlan> PlanOf() const { return PoolingPlanner{model_, 4}.PlanScores(scores_); }
  ScoreRequest scores_;
};

TEST_F(PairPlanTest, TextsArePutTogetherByTheTokenizersTemplate) {
  scores_.query = Text("a");
  scores_.items = {Text("b c"), Text("c")};
  const auto plan = PlanOf();
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  EXPECT_EQ(*plan->texts[0].tokens, (Ids{2, 4, 3, 5, 6, 3}));
  EXPECT_EQ(plan->texts[0].token_types, (Types{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(*plan->texts[1].tokens, (Ids{2, 4, 3, 6, 3}));
  scores_.item_first = true;
  EXPECT_EQ(*PlanOf()->texts[0].tokens, (Ids{2, 5, 6, 3, 4, 3}));
}

TEST_F(PairPlanTest, WithoutATemplateTheSecondTextFollowsTheFirst) {
  model_.tokenizer = *Tokenizer::FromJson(
      R"({"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,)"
      R"("decoder":null,"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
      R"("unk_token":"u","vocab":{"u":0,"a":1,"b":2,"c":3}}})");
  scores_.query = Text("a");
  scores_.items = {Text("b c")};
  const auto plan = PlanOf();
  ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
  EXPECT_EQ(*plan->texts[0].tokens, (Ids{1, 2, 3}));
  EXPECT_EQ(plan->texts[0].token_types, (Types{0, 1, 1}));
}

TEST_F(PairPlanTest, IdsFollowEachOther) {
  scores_.query = List({4});
  scores_.items = {List({5, 6})};
  EXPECT_EQ(*PlanOf()->texts[0].tokens, (Ids{4, 5, 6}));
  EXPECT_EQ(PlanOf()->texts[0].token_types, (Types{0, 1, 1}));
}

TEST_F(PairPlanTest, TheLongerOfAPairIsCutFirst) {
  scores_.query = Text("a");
  scores_.items = {Text("b c b c")};
  EXPECT_EQ(FieldOf(PlanOf().status()), "items");
  scores_.truncate = kTruncateToLimit;
  ASSERT_TRUE(PlanOf().ok()) << MessageOf(PlanOf().status());
  EXPECT_EQ(*PlanOf()->texts[0].tokens, (Ids{2, 4, 3, 5, 6, 3}));
}

TEST_F(PairPlanTest, AModelsTemplateForPairsIsUsed) {
  model_.chat_template = *ChatTemplate::FromSource(
      "{{ messages[1].content }} {{ instruct }} {{ messages[0].content }}", {});
  RerankRequest rerank;
  rerank.query = "a";
  rerank.documents = {"b", "c"};
  rerank.instruction = "b";
  const PoolingPlanner planner{model_, 4}, small{model_, 1};
  EXPECT_EQ(FieldOf(planner.PlanRerank(rerank).status()), "instruct");
  model_.joins_pairs = true;
  EXPECT_EQ(*planner.PlanRerank(rerank)->texts[1].tokens, (Ids{6, 5, 4}));
  EXPECT_EQ(FieldOf(small.PlanRerank(rerank).status()), "documents");
}

TEST_F(PairPlanTest, APlainTemplateIsUsedInPlaceOfTheChatTemplate) {
  model_.chat_template = *ChatTemplate::FromSource("{{ messages[0].content }}", {});
  model_.joins_pairs = true;
  model_.plain_pair_template = "a {query} {document}";
  RerankRequest rerank;
  rerank.query = "b";
  rerank.documents = {"c"};
  const PoolingPlanner planner{model_, 4};
  EXPECT_EQ(*planner.PlanRerank(rerank)->texts[0].tokens, (Ids{4, 5, 6}));
  rerank.instruction = "b";
  EXPECT_EQ(FieldOf(planner.PlanRerank(rerank).status()), "instruct");
}

// Scores of a reranker once meant what it says of both texts side by side, which it was never shown in training.
TEST_F(PairPlanTest, ScoresReadPairsInTheModelsTemplateButIdsAsTheyAre) {
  model_.joins_pairs = true;
  model_.plain_pair_template = "a {query} {document}";
  scores_.query = Text("b");
  scores_.items = {Text("c"), Text("a")};
  ASSERT_TRUE(PlanOf().ok()) << MessageOf(PlanOf().status());
  EXPECT_EQ(*PlanOf()->texts[0].tokens, (Ids{4, 5, 6}));
  EXPECT_EQ(*PlanOf()->texts[1].tokens, (Ids{4, 5, 4}));
  scores_.item_first = true;
  EXPECT_EQ(FieldOf(PlanOf().status()), "item_first");
  scores_.item_first = false;
  scores_.truncate = 3;
  EXPECT_EQ(FieldOf(PlanOf().status()), "truncate_prompt_tokens");
  scores_.truncate.reset();
  scores_.items = {Text("a b c a b c")};
  EXPECT_EQ(FieldOf(PlanOf().status()), "items");
  scores_.query = List({5});
  scores_.items = {List({6})};
  EXPECT_EQ(*PlanOf()->texts[0].tokens, (Ids{5, 6}));
}

TEST_F(PairPlanTest, EmptyTextsAreRefused) {
  RerankRequest rerank;
  rerank.query = "a";
  rerank.documents = {"b", ""};
  const Status refused = PoolingPlanner{model_, 4}.PlanRerank(rerank).status();
  EXPECT_EQ(FieldOf(refused), "documents");
  EXPECT_NE(MessageOf(refused).find("documents[1]"), std::string_view::npos);
  scores_.items = {Text("a")};
  EXPECT_EQ(FieldOf(PlanOf().status()), "query");
}

}  // namespace
}  // namespace portico
