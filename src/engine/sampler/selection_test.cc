#include "engine/sampler/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

namespace portico {
namespace {

// The filter as its definition reads: sort everything, walk from the best.
std::vector<TokenId> Reference(const std::vector<float>& p, const SelectionRule& rule) {
  std::vector<TokenId> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](TokenId a, TokenId b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
  double total = 0;
  for (const float value : p) total += value;
  std::vector<TokenId> kept;
  double before = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const float value = p[order[i]];
    if (rule.top_k > 0 && i >= static_cast<size_t>(rule.top_k)) break;
    if (rule.top_p < 1 && before > rule.top_p * total) break;
    if (value < rule.min_p) break;
    kept.push_back(order[i]);
    before += value;
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::vector<float> Distribution(std::mt19937* random, size_t n, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> p(n);
  for (float& value : p) value = normal(*random);
  const float max = *std::max_element(p.begin(), p.end());
  for (float& value : p) value = std::exp(value - max);
  return p;
}

std::vector<TokenId> Kept(const std::vector<float>& p, const SelectionRule& rule) {
  std::vector<TokenId> kept;
  std::vector<TokenId> scratch;
  Select(p, std::accumulate(p.begin(), p.end(), 0.0), rule, &kept, &scratch);
  return kept;
}

TEST(Selection, EqualsItsDefinitionOnRandomDistributionsAndRules) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const float spread = std::array{0.0f, 0.1f, 1.0f, 4.0f, 12.0f}[random() % 5];
    const std::vector<float> p = Distribution(&random, 1 + random() % 600, spread);
    SelectionRule rule;
    if (random() % 2 == 0) rule.top_k = 1 + static_cast<int32_t>(random() % 700);
    if (random() % 2 == 0) rule.top_p = static_cast<float>(1 + random() % 1000) / 1000;
    if (random() % 2 == 0) rule.min_p = static_cast<float>(random() % 1001) / 1000;
    ASSERT_EQ(Kept(p, rule), Reference(p, rule))
        << "round " << round << " n " << p.size() << " k " << rule.top_k << " p " << rule.top_p
        << " min " << rule.min_p;
  }
}

TEST(Selection, EqualProbabilitiesKeepTheLowerIds) {
  const std::vector<float> p(200, 1.0f);
  EXPECT_EQ(Kept(p, {3, 1, 0}), (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(Kept(p, {-1, 0.25f, 0}).size(), 51u);  // the one that crosses the border stays
  EXPECT_EQ(Kept(p, {-1, 0.25f, 0}).back(), 50);
}

TEST(Selection, TopPLooksAtTheWholeMassAndNotAtTheTopK) {
  // Of the two best, the first holds 5/9 of their mass but only half of all.
  const std::vector<float> p = {1.0f, 0.8f, 0.1f, 0.1f};
  EXPECT_EQ(Kept(p, {2, 0.52f, 0}), (std::vector<TokenId>{0, 1}));
}

TEST(Selection, TheBestTokenAlwaysStays) {
  const std::vector<float> p = {0.2f, 1.0f, 0.2f};
  EXPECT_EQ(Kept(p, {-1, 1e-6f, 0}), (std::vector<TokenId>{1}));
  EXPECT_EQ(Kept(p, {-1, 1, 1.0f}), (std::vector<TokenId>{1}));
}

TEST(Selection, GreatestListsTheBestInOrder) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> values(1 + random() % 300);
    for (float& value : values) value = static_cast<float>(random() % 50);
    std::vector<TokenId> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return values[a] != values[b] ? values[a] > values[b] : a < b;
    });
    const size_t n = random() % 25;
    order.resize(std::min(n, order.size()));
    std::vector<TokenId> best;
    Greatest(values, n, &best);
    ASSERT_EQ(best, order);
  }
}

}  // namespace
}  // namespace portico
