#include "engine/llama/attention/q8_products.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/llama/attention/custom_operation.h"
#include "engine/llama/attention/random_product_for_test.h"

namespace portico::llama {
namespace {

// With a value that is smaller than what quantizing makes, as a file may have it.
class Q8Product : public RandomProduct {
 public:
  explicit Q8Product(ProductShape shape) : RandomProduct(shape) {
    static_cast<int8_t*>(matrix()->data)[ggml_nbytes(matrix()) - 1] = -128;
  }
};

TEST(Q8ProductsTest, AreGgmlsToTheBit) {
  constexpr ggml_type kType = GGML_TYPE_Q8_0;
  if (!HasQ8Products(Q8Product({kType, 32, 1, 1}).tensor())) GTEST_SKIP() << "no AVX2";
  for (const int64_t vectors : {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 100}) {
    for (const ProductShape shape :
         {ProductShape{kType, 64, 131, vectors}, ProductShape{kType, 1024, 8, vectors},
          ProductShape{kType, 32, 1, vectors}}) {
      for (const int threads : {1, 2, 3}) {
        const std::vector<float> theirs = Q8Product(shape).Compute(threads);
        for (const auto compute : {&ComputeQ8Products, &ComputeQ8ProductsAvx2}) {
          Q8Product ours(shape);
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
