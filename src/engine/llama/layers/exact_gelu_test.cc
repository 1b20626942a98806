#include "engine/llama/layers/exact_gelu.h"

#include <gtest/gtest.h>

#include <cmath>

namespace portico::llama {
namespace {

void ExpectEqual(GeluForm form, double (*gelu)(double)) {
  std::vector<float> values;
  for (int i = -40000; i <= 40000; ++i) values.push_back(static_cast<float>(i) / 2000);
  std::vector<float> results = values;
  GeluInPlace(form, results.data(), results.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    ASSERT_NEAR(results[i], gelu(x), 4e-7 * std::max(1.0, std::abs(x))) << x;
  }
}

TEST(ExactGelu, EqualsTheErrorFunction) {
  ExpectEqual(GeluForm::kErf, [](double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); });
}

TEST(ExactGelu, EqualsTheApproximationByTanh) {
  ExpectEqual(GeluForm::kTanh, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
}

}  // namespace
}  // namespace portico::llama
