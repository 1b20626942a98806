#include "engine/llama/attention/q8_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/llama/attention/custom_operation.h"
#include "ggml-cpu.h"

namespace portico::llama {
namespace {

struct ProductShape {
  int64_t columns, rows, vectors;
};

// A product of random numbers; large blocks and empty ones are among them.
class RandomProduct {
 public:
  explicit RandomProduct(ProductShape shape) {
    context_ = ggml_init({memory_.size(), memory_.data(), /*no_alloc=*/false});
    ggml_tensor* matrix = ggml_new_tensor_2d(context_, GGML_TYPE_Q8_0, shape.columns, shape.rows);
    std::mt19937 random(1);
    std::normal_distribution<float> number;
    std::vector<float> numbers(static_cast<size_t>(shape.columns * shape.rows));
    for (float& n : numbers) n = number(random);
    std::fill_n(numbers.begin(), 32, 0.0f);
    ggml_quantize_chunk(GGML_TYPE_Q8_0, numbers.data(), matrix->data, 0, shape.rows, shape.columns,
                        nullptr);
    // Smaller than what quantizing makes, as a file may have it.
    static_cast<int8_t*>(matrix->data)[ggml_nbytes(matrix) - 1] = -128;
    ggml_tensor* vectors =
        ggml_new_tensor_2d(context_, GGML_TYPE_F32, shape.columns, shape.vectors);
    auto* values = static_cast<float*>(vectors->data);
    for (int64_t i = 0; i < ggml_nelements(vectors); ++i) values[i] = 100 * number(random);
    product_ = ggml_mul_mat(context_, matrix, vectors);
  }
  ~RandomProduct() { ggml_free(context_); }
  RandomProduct(const RandomProduct&) = delete;
  RandomProduct& operator=(const RandomProduct&) = delete;

  ggml_tensor* tensor() { return product_; }

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
  ggml_tensor* product_ = nullptr;
};

TEST(Q8ProductsTest, AreGgmlsToTheBit) {
  for (const int64_t vectors : {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 100}) {
    for (const ProductShape shape : {ProductShape{64, 131, vectors}, ProductShape{1024, 8, vectors},
                                     ProductShape{32, 1, vectors}}) {
      for (const int threads : {1, 2, 3}) {
        const std::vector<float> theirs = RandomProduct(shape).Compute(threads);
        for (const auto compute : {&ComputeQ8Products, &ComputeQ8ProductsAvx2}) {
          RandomProduct ours(shape);
          if (vectors == 1 && !HasQ8Products(ours.tensor())) GTEST_SKIP() << "no AVX2";
          BecomeCustom(ours.tensor(), compute, nullptr);
          ASSERT_EQ(ours.Compute(threads), theirs)
              << shape.columns << " columns, " << shape.rows << " rows, " << vectors << " vectors, "
              << threads << " threads";
        }
      }
    }
  }
}

TEST(Q8ProductsTest, AreNotOfOtherTypesOrOfSeveralMatrices) {
  std::vector<char> memory(size_t{1} << 20);
  ggml_context* context = ggml_init({memory.size(), memory.data(), /*no_alloc=*/false});
  ggml_tensor* vectors = ggml_new_tensor_2d(context, GGML_TYPE_F32, 32, 2);
  ggml_tensor* halves = ggml_new_tensor_2d(context, GGML_TYPE_F16, 32, 4);
  EXPECT_FALSE(HasQ8Products(ggml_mul_mat(context, halves, vectors)));
  ggml_tensor* matrices = ggml_new_tensor_3d(context, GGML_TYPE_Q8_0, 32, 4, 2);
  ggml_tensor* of_each = ggml_new_tensor_3d(context, GGML_TYPE_F32, 32, 2, 2);
  EXPECT_FALSE(HasQ8Products(ggml_mul_mat(context, matrices, of_each)));
  ggml_free(context);
}

}  // namespace
}  // namespace portico::llama
