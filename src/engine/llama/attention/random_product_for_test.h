// Products of random numbers, computed by ggml or by an operation that replaces its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "ggml-cpu.h"

namespace portico::llama {

struct ProductShape {
  ggml_type type;
  int64_t columns, rows, vectors;
};

// The same numbers for the same shape; of fewer vectors the first ones. Of a quantized matrix large blocks and empty ones are
// among them.
class RandomProduct {
 public:
  explicit RandomProduct(ProductShape shape) {
    context_ = ggml_init({memory_.size(), memory_.data(), /*no_alloc=*/false});
    matrix_ = ggml_new_tensor_2d(context_, shape.type, shape.columns, shape.rows);
    std::mt19937 random(1);
    std::normal_distribution<float> number;
    std::vector<float> numbers(static_cast<size_t>(shape.columns * shape.rows));
    for (float& n : numbers) n = number(random);
    std::fill_n(numbers.begin(), 32, 0.0f);
    if (shape.type == GGML_TYPE_F32) {
      std::copy(numbers.begin(), numbers.end(), static_cast<float*>(matrix_->data));
    } else {
      ggml_quantize_chunk(shape.type, numbers.data(), matrix_->data, 0, shape.rows, shape.columns,
                          nullptr);
    }
    ggml_tensor* vectors =
        ggml_new_tensor_2d(context_, GGML_TYPE_F32, shape.columns, shape.vectors);
    auto* values = static_cast<float*>(vectors->data);
    for (int64_t i = 0; i < ggml_nelements(vectors); ++i) values[i] = 100 * number(random);
    product_ = ggml_mul_mat(context_, matrix_, vectors);
  }
  ~RandomProduct() { ggml_free(context_); }
  RandomProduct(const RandomProduct&) = delete;
  RandomProduct& operator=(const RandomProduct&) = delete;

  ggml_tensor* tensor() { return product_; }
  ggml_tensor* matrix() { return matrix_; }

  std::vector<float> Compute(int threads) {
    ggml_cgraph* graph = ggml_new_graph(context_);
    ggml_build_forward_expand(graph, product_);
    EXPECT_EQ(ggml_graph_compute_with_ctx(context_, graph, threads), GGML_STATUS_SUCCESS);
    const auto* data = static_cast<const float*>(product_->data);
    return {data, data + ggml_nelements(product_)};
  }

 private:
  std::vector<char> memory_ = std::vector<char>(size_t{16} << 20);
  ggml_context* context_ = nullptr;
  ggml_tensor* matrix_ = nullptr;
  ggml_tensor* product_ = nullptr;
};

}  // namespace portico::llama
