#include "engine/sampler/vocab_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace portico {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomRow(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 5);
  std::vector<float> row(n);
  for (float& value : row) value = normal(random);
  return row;
}

// Below, at and above a vector and a block.
constexpr size_t kSizes[] = {1, 2, 15, 16, 17, 31, 255, 1023, 1024, 1025, 5000};

TEST(VocabMath, FindsTheGreatestValueAndItsFirstIndex) {
  for (const size_t n : kSizes) {
    std::vector<float> row = RandomRow(n, static_cast<uint32_t>(n));
    row[n / 2] = row[n - 1] = 99;
    EXPECT_EQ(MaxOf(row), 99);
    EXPECT_EQ(ArgMax(row, 99), static_cast<TokenId>(n / 2));
  }
}

TEST(VocabMath, TheGreatestOfNothingAndOfMaskedRowsIsMinusInfinity) {
  EXPECT_EQ(MaxOf({}), -kInfinity);
  EXPECT_EQ(MaxOf(std::vector<float>(40, -kInfinity)), -kInfinity);
}

TEST(VocabMath, ExponentialsAndTheirSumsAreWithinAMillionth) {
  for (const size_t n : kSizes) {
    const std::vector<float> row = RandomRow(n, static_cast<uint32_t>(n) + 100);
    const float max = MaxOf(row);
    for (const float scale : {0.5f, 1.0f, 3.0f}) {
      std::vector<float> out(n);
      std::vector<float> blocks(SumBlocks(n));
      const double total = ExpOf(row, max, scale, out, blocks);
      double expected_total = 0;
      for (size_t i = 0; i < n; ++i) {
        const double expected = std::exp(static_cast<double>((row[i] - max) * scale));
        EXPECT_NEAR(out[i], expected, 1e-6 * expected + 1e-37) << i;
        expected_total += expected;
      }
      EXPECT_NEAR(total, expected_total, 1e-5 * expected_total);
      double of_blocks = 0;
      for (const float block : blocks) of_blocks += block;
      EXPECT_NEAR(of_blocks, total, 1e-6 * total);
      if (scale == 1.0f) {
        EXPECT_NEAR(ExpSum(row, max, 1), total, 1e-6 * total);
      }
    }
  }
}

TEST(VocabMath, MaskedAndVeryUnlikelyTokensHaveNoMass) {
  std::vector<float> row = {0, -kInfinity, -200, -86};
  std::vector<float> blocks(1);
  ExpOf(row, 0, 1, row, blocks);
  EXPECT_EQ(row[0], 1);
  EXPECT_EQ(row[1], 0);
  EXPECT_EQ(row[2], 0);
  EXPECT_GT(row[3], 0);
}

TEST(VocabMath, IndicesAtLeastListsThemInOrder) {
  for (const size_t n : kSizes) {
    const std::vector<float> row = RandomRow(n, static_cast<uint32_t>(n) + 200);
    std::vector<TokenId> expected;
    for (size_t i = 0; i < n; ++i) {
      if (row[i] >= 1.5f) expected.push_back(static_cast<TokenId>(i));
    }
    std::vector<TokenId> got;
    IndicesAtLeast(row, 1.5f, &got);
    EXPECT_EQ(got, expected);
  }
}

}  // namespace
}  // namespace portico
