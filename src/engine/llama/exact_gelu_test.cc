#include "engine/llama/exact_gelu.h"

#include <gtest/gtest.h>

#include <cmath>

namespace portico::llama {
namespace {

TEST(ExactGelu, EqualsTheErrorFunction) {
  std::vector<float> values;
  for (int i = -40000; i <= 40000; ++i) values.push_back(static_cast<float>(i) / 2000);
  std::vector<float> results = values;
  GeluInPlace(results.data(), results.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    const double expected = x * 0.5 * std::erfc(-x * M_SQRT1_2);
    ASSERT_NEAR(results[i], expected, 4e-7 * std::max(1.0, std::abs(x))) << x;
  }
}

}  // namespace
}  // namespace portico::llama
