#include "engine/sampler/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "engine/sampler/random.h"

namespace portico {
namespace {

constexpr TokenId kEos = 7;
const std::vector<TokenId> kEosTokens = {kEos};

class SamplerTest : public testing::Test {
 protected:
  Sampler Make(const SamplingParams& params, int32_t choice = 0, uint64_t fallback = 1) {
    return Sampler(std::make_shared<SamplingParams>(params), choice, kEosTokens, fallback);
  }
  std::vector<TokenId> Draw(Sampler sampler, const std::vector<float>& logits, int count) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(sampler.Next(logits, &scratch_));
    return tokens;
  }
  static SamplingParams Seeded(uint64_t seed) {
    SamplingParams params;
    params.seed = seed;
    return params;
  }
  SamplerScratch scratch_;
};

TEST(Philox, EqualsThePublishedVectors) {
  // From the reference implementation's known-answer tests (Random123, philox4x32 10 rounds).
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST_F(SamplerTest, TakesTheBestTokenBelowTheGreedyTemperature) {
  const std::vector<float> logits = {1, 3, 3, 2};
  for (const float temperature : {0.0f, 9e-7f}) {
    SamplingParams params;
    params.temperature = temperature;
    EXPECT_EQ(Draw(Make(params), logits, 3), (std::vector<TokenId>{1, 1, 1}));
  }
  SamplingParams params;
  params.top_k = 1;
  EXPECT_EQ(Draw(Make(params), logits, 3), (std::vector<TokenId>{1, 1, 1}));
}

// Chi-squared of the draws against softmax(logits / temperature).
TEST_F(SamplerTest, DrawsFollowTheScaledDistribution) {
  const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 1.0f, 0.0f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    SamplingParams params = Seeded(42);
    params.temperature = temperature;
    constexpr int kDraws = 40000;
    std::vector<int> counts(logits.size());
    for (const TokenId token : Draw(Make(params), logits, kDraws)) ++counts[token];
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    double chi = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected = kDraws * std::exp(logits[i] / temperature) / total;
      chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi, 23.5) << temperature;  // four degrees of freedom, p = 1e-4
  }
}

TEST_F(SamplerTest, DrawsOverManyBlocksFollowTheDistribution) {
  std::vector<float> logits(5000, -20.0f);
  logits[10] = logits[1500] = logits[4999] = 0.0f;
  std::map<TokenId, int> counts;
  for (const TokenId token : Draw(Make(Seeded(3)), logits, 30000)) ++counts[token];
  for (const TokenId token : {10, 1500, 4999}) EXPECT_NEAR(counts[token], 10000, 400) << token;
}

TEST_F(SamplerTest, DrawsDependOnSeedChoiceAndPositionOnly) {
  const std::vector<float> flat(1000, 0.0f);
  const auto base = Draw(Make(Seeded(5)), flat, 50);
  EXPECT_EQ(Draw(Make(Seeded(5), 0, 999), flat, 50), base);
  EXPECT_NE(Draw(Make(Seeded(6)), flat, 50), base);
  EXPECT_NE(Draw(Make(Seeded(5), 1), flat, 50), base);
  EXPECT_NE(Draw(Make({}, 0, 1), flat, 50), Draw(Make({}, 0, 2), flat, 50));
  // Position 20 draws the same whatever was drawn before it.
  std::vector<float> peaked(1000, 0.0f);
  peaked[3] = 100;
  Sampler sampler = Make(Seeded(5));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sampler.Next(peaked, &scratch_), 3);
  EXPECT_EQ(sampler.Next(flat, &scratch_), base[20]);
}

TEST_F(SamplerTest, FiltersKeepTheOthersFromBeingDrawn) {
  const std::vector<float> logits = {0, 1, 2, 3, 4, 5};
  const auto drawn = [&](SamplingParams params) {
    params.seed = 9;
    const auto tokens = Draw(Make(params), logits, 3000);
    return std::set<TokenId>(tokens.begin(), tokens.end());
  };
  SamplingParams top_k;
  top_k.top_k = 2;
  EXPECT_EQ(drawn(top_k), (std::set<TokenId>{4, 5}));
  SamplingParams top_p;
  top_p.top_p = 0.8f;  // 0.63, 0.23, 0.09, …
  EXPECT_EQ(drawn(top_p), (std::set<TokenId>{4, 5}));
  SamplingParams min_p;
  min_p.min_p = 0.13f;  // e^-2 = 0.135
  EXPECT_EQ(drawn(min_p), (std::set<TokenId>{3, 4, 5}));
}

TEST_F(SamplerTest, FrequencyAndPresencePenaltiesCountOutputTokensOnly) {
  SamplingParams params;
  params.temperature = 0;
  params.frequency_penalty = 1.0f;
  const std::vector<float> logits = {5.0f, 4.5f, 0.0f};
  EXPECT_EQ(Draw(Make(params), logits, 4), (std::vector<TokenId>{0, 1, 0, 1}));
  params.frequency_penalty = 0;
  params.presence_penalty = 2.0f;
  EXPECT_EQ(Draw(Make(params), logits, 4), (std::vector<TokenId>{0, 1, 0, 0}));
}

// SGLang's penaltylib/repetition_penalty.py: 240 requests beside the real server differed where ours counted the
// prompt too.
TEST_F(SamplerTest, TheRepetitionPenaltyCountsTheAnswerOnly) {
  SamplingParams params;
  params.temperature = 0;
  params.repetition_penalty = 2.0f;
  EXPECT_EQ(Draw(Make(params), {5, 3, 2}, 2), (std::vector<TokenId>{0, 1}));     // 5 / 2
  EXPECT_EQ(Draw(Make(params), {-2, -3, -9}, 2), (std::vector<TokenId>{0, 1}));  // -2 * 2
}

TEST_F(SamplerTest, LogitBiasIsAddedAfterThePenalties) {
  SamplingParams params;
  params.temperature = 0;
  params.logit_bias = {{2, 100.0f}};
  EXPECT_EQ(Draw(Make(params), {5, 3, 2}, 1), (std::vector<TokenId>{2}));
  params.logit_bias = {{0, 2.0f}};
  params.repetition_penalty = 4.0f;
  EXPECT_EQ(Draw(Make(params), {4, 3.5f, 2}, 2), (std::vector<TokenId>{0, 1}));  // 4 / 4 + 2
}

TEST_F(SamplerTest, StopTokensAreNotDrawnBeforeMinNewTokens) {
  SamplingParams params;
  params.temperature = 0;
  params.min_new_tokens = 2;
  params.stop_token_ids = {1};
  params.logit_bias = {{kEos, 50.0f}};  // not even then
  const std::vector<float> logits = {1, 9, 2, 0, 0, 0, 0, 8};
  EXPECT_EQ(Draw(Make(params), logits, 3), (std::vector<TokenId>{2, 2, kEos}));
}

TEST_F(SamplerTest, KnowsWhatEndsTheAnswer) {
  SamplingParams params;
  params.stop_token_ids = {3};
  EXPECT_TRUE(Make(params).IsStop(3));
  EXPECT_TRUE(Make(params).IsStop(kEos));
  EXPECT_FALSE(Make(params).IsStop(4));
  params.ignore_eos = true;
  EXPECT_TRUE(Make(params).IsStop(3));
  EXPECT_FALSE(Make(params).IsStop(kEos));
}

TEST_F(SamplerTest, RefusesARowWithoutAFiniteGreatestValue) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Sampler sampler = Make({});
  EXPECT_EQ(sampler.Next(std::vector<float>(20, kNan), &scratch_), -1);
  EXPECT_EQ(sampler.Next(std::vector<float>(20, -kInfinity), &scratch_), -1);
  EXPECT_EQ(sampler.Next(std::vector<float>{0, kInfinity}, &scratch_), -1);
  EXPECT_EQ(sampler.position(), 0);
}

TEST_F(SamplerTest, LogprobsAreThoseOfTheRowThatWasDrawnFrom) {
  SamplingParams params = Seeded(1);
  params.temperature = 0.5f;
  params.min_new_tokens = 1;
  params.logit_bias = {{2, 1.0f}};
  const std::vector<float> logits = {1, 2, 3, 0, 0, 0, 0, 9};
  Sampler sampler = Make(params);
  std::span<const float> row;
  const TokenId token = sampler.Next(logits, &scratch_, &row);
  EXPECT_NE(token, kEos);
  const PositionLogprobs got = LogprobsOf(row, token, 3, std::vector<TokenId>{kEos, 2}, &scratch_,
                                          sampler.inverse_temperature());
  // Twice 1, 2, 3 + 1 and four zeros; the end token is masked.
  const double sum = std::exp(2.0) + std::exp(4.0) + std::exp(8.0) + 4;
  ASSERT_EQ(got.top.size(), 3u);
  EXPECT_EQ(got.top[0].token, 2);
  EXPECT_NEAR(got.top[0].logprob, 8 - std::log(sum), 1e-5);
  EXPECT_NEAR(got.top[1].logprob, 4 - std::log(sum), 1e-5);
  EXPECT_EQ(got.of_ids[0].logprob, std::numeric_limits<float>::lowest());
  EXPECT_EQ(got.of_ids[1].logprob, got.top[0].logprob);
  sampler.Next(logits, &scratch_, &row);  // 2 is biased still, the end token is free
  EXPECT_EQ(row[kEos], 9);
  EXPECT_EQ(row[2], 4);
}

TEST_F(SamplerTest, WhereTheBestTokenIsTakenTheTemperatureDoesNotCount) {
  SamplingParams params;
  params.temperature = 0.25f;
  params.top_k = 1;
  EXPECT_EQ(Make(params).inverse_temperature(), 1.0f);
  params.top_k = 2;
  EXPECT_EQ(Make(params).inverse_temperature(), 4.0f);
}

TEST_F(SamplerTest, LogprobsAreTheLogSoftmaxOfTheLogits) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(3000);
  for (float& logit : logits) logit = normal(random);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const PositionLogprobs got =
      LogprobsOf(logits, 17, 20, std::vector<TokenId>{3, 17, 3}, &scratch_);
  EXPECT_EQ(got.chosen.token, 17);
  EXPECT_NEAR(got.chosen.logprob, logits[17] - std::log(sum), 1e-4);
  ASSERT_EQ(got.top.size(), 20u);
  EXPECT_TRUE(std::is_sorted(got.top.begin(), got.top.end(),
                             [](const auto& a, const auto& b) { return a.logprob > b.logprob; }));
  EXPECT_NEAR(got.top[0].logprob,
              *std::max_element(logits.begin(), logits.end()) - (logits[17] - got.chosen.logprob),
              1e-5);
  ASSERT_EQ(got.of_ids.size(), 3u);
  EXPECT_EQ(got.of_ids[0].token, 3);
  EXPECT_NEAR(got.of_ids[0].logprob, logits[3] - std::log(sum), 1e-4);
  EXPECT_EQ(got.of_ids[1].logprob, got.chosen.logprob);
  EXPECT_EQ(got.of_ids[2].logprob, got.of_ids[0].logprob);
  EXPECT_TRUE(LogprobsOf(logits, 17, 0, {}, &scratch_).top.empty());
  EXPECT_EQ(LogprobsOf(std::vector<float>{1, 2}, 0, 20, {}, &scratch_).top.size(), 2u);
}

}  // namespace
}  // namespace portico
