#include "engine/llama/layers/text_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace portico::llama {
namespace {

std::vector<float> Random(size_t count, std::mt19937* random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(*random);
  return values;
}

TEST(TextAttention, EqualsAPlainComputation) {
  std::mt19937 random(7);
  AttentionScratch scratch;
  for (const size_t size : {8, 32, 48, 64}) {
    for (const size_t count : {1, 2, 5, 31, 32, 33, 130}) {
      const size_t query_stride = size + 3, out_stride = size + 1;
      const std::vector<float> queries = Random(count * query_stride, &random);
      const std::vector<float> keys = Random(count * size, &random);
      const std::vector<float> values = Random(count * size, &random);
      constexpr float kUntouched = 77;
      std::vector<float> out(count * out_stride, kUntouched);
      Attend(queries.data(), query_stride, keys.data(), values.data(), count, size, 0.3f,
             out.data(), out_stride, &scratch);
      for (size_t i = 0; i < count; ++i) {
        std::vector<double> expected(size);
        double sum = 0;
        for (size_t j = 0; j < count; ++j) {
          double dot = 0;
          for (size_t c = 0; c < size; ++c) {
            dot += double{queries[i * query_stride + c]} * double{keys[j * size + c]};
          }
          const double weight = std::exp(0.3 * dot);
          sum += weight;
          for (size_t c = 0; c < size; ++c) expected[c] += weight * double{values[j * size + c]};
        }
        for (size_t c = 0; c < size; ++c) {
          ASSERT_NEAR(out[i * out_stride + c], expected[c] / sum, 2e-5) << count << " " << size;
        }
        ASSERT_EQ(out[i * out_stride + size], kUntouched);
      }
    }
  }
}

TEST(TextAttention, ScoresMayBeHuge) {
  AttentionScratch scratch;
  const std::vector<float> queries = {1000, 0}, keys = {1000, -1000}, values = {3, 5};
  std::vector<float> out(2);
  Attend(queries.data(), 1, keys.data(), values.data(), 2, 1, 1.0f, out.data(), 1, &scratch);
  EXPECT_EQ(out[0], 3);
  EXPECT_NEAR(out[1], 4, 1e-5);
}

}  // namespace
}  // namespace portico::llama
