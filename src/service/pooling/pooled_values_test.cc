#include "service/pooling/pooled_values.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "service/pooling/rerank.h"

namespace portico {
namespace {

EngineInfo Embedder(std::vector<int32_t> sizes = {}) {
  EngineInfo engine;
  engine.task = ModelTask::kEmbed;
  engine.embedding_size = 4;
  engine.embedding_sizes = std::move(sizes);
  engine.normalized = true;
  return engine;
}

TEST(VectorFormTest, ACutVectorHasLengthOneAgain) {
  std::vector<float> vector = {3, 4, 12, 0};
  VectorForm::Of(Embedder(), 2, std::nullopt)->Apply(&vector);
  ASSERT_EQ(vector.size(), 2u);
  EXPECT_FLOAT_EQ(vector[0], 0.6f);
  EXPECT_FLOAT_EQ(vector[1], 0.8f);
}

TEST(VectorFormTest, TheRequestDecidesOnTheLength) {
  std::vector<float> vector = {3, 4, 0, 0};
  VectorForm::Of(Embedder(), std::nullopt, false)->Apply(&vector);
  EXPECT_EQ(vector, (std::vector<float>{3, 4, 0, 0}));
}

TEST(VectorFormTest, AVectorOfZerosStaysOne) {
  std::vector<float> vector(4, 0);
  VectorForm::Of(Embedder(), std::nullopt, std::nullopt)->Apply(&vector);
  EXPECT_EQ(vector, std::vector<float>(4, 0));
}

TEST(VectorFormTest, SizesThatTheModelDoesNotHaveAreRefused) {
  for (int32_t size : {1, 3, 4}) EXPECT_TRUE(VectorForm::Of(Embedder(), size, {}).ok());
  EXPECT_EQ(FieldOf(VectorForm::Of(Embedder(), 5, {}).status()), "dimensions");
  const EngineInfo trained = Embedder({2});
  for (int32_t size : {2, 4}) EXPECT_TRUE(VectorForm::Of(trained, size, {}).ok());
  for (int32_t size : {1, 3, 5}) {
    const Status refused = VectorForm::Of(trained, size, {}).status();
    EXPECT_EQ(FieldOf(refused), "dimensions");
    EXPECT_NE(MessageOf(refused).find("2 or 4"), std::string_view::npos);
  }
}

TEST(ProbabilitiesTest, SeveralLabelsShareOneAndASingleOneHasItsOwn) {
  std::vector<float> several = {1000, 1000, -1000};
  ToProbabilities(several, ProblemType::kSingleLabel);
  EXPECT_EQ(several, (std::vector<float>{0.5, 0.5, 0}));
  std::vector<float> single = {0};
  ToProbabilities(single, ProblemType::kSingleLabel);
  EXPECT_EQ(single[0], 0.5f);
}

// Moderation models, where several labels hold of one text, were shown as if the likeliest took from the others.
TEST(ProbabilitiesTest, LabelsThatDoNotExcludeOneAnotherHaveTheirOwnAndNumbersStayAsTheyAre) {
  std::vector<float> each = {0, 1000, -1000};
  ToProbabilities(each, ProblemType::kMultiLabel);
  EXPECT_EQ(each, (std::vector<float>{0.5, 1, 0}));
  std::vector<float> numbers = {3.5};
  ToProbabilities(numbers, ProblemType::kRegression);
  EXPECT_EQ(numbers[0], 3.5f);
}

TEST(RelevanceLabelsTest, OneLabelOrAYesAgainstANo) {
  using Labels = std::vector<std::string>;
  const std::vector<float> logits = {1, 4};
  EXPECT_EQ(RelevanceLabels::Among(Labels{"LABEL_0"})->Of(std::span(logits).first(1)), 1);
  EXPECT_EQ(RelevanceLabels::Among(Labels{"yes", "no"})->Of(logits), -3);
  EXPECT_EQ(RelevanceLabels::Among(Labels{"no", "yes"})->Of(logits), 3);
  for (const Labels& labels :
       {Labels{}, {"yes", "yes"}, {"LABEL_0", "LABEL_1"}, {"yes", "no", "maybe"}}) {
    EXPECT_FALSE(RelevanceLabels::Among(labels)) << labels.size();
  }
}

TEST(RankTest, TheBestComeFirstAndEqualOnesKeepTheirOrder) {
  const float kNone = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores = {1, kNone, 2, 1, 3, 1};
  std::vector<size_t> order;
  for (const RankedDocument& document : Rank(scores, std::nullopt)) order.push_back(document.index);
  EXPECT_EQ(order, (std::vector<size_t>{4, 2, 0, 3, 5, 1}));
  EXPECT_EQ(Rank(scores, 2).size(), 2u);
  EXPECT_EQ(Rank(scores, 100).size(), 6u);
}

}  // namespace
}  // namespace portico
