#include "engine/llama/attention/float_products.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/llama/attention/custom_operation.h"
#include "engine/llama/attention/random_product_for_test.h"

namespace portico::llama {
namespace {

class FloatProductsTest : public testing::TestWithParam<ggml_type> {
 protected:
  void SetUp() override {
    if (!HasFloatProducts(RandomProduct({GetParam(), 32, 4, 1}).tensor())) {
      GTEST_SKIP() << "no AVX-512 with BF16";
    }
  }
};

TEST_P(FloatProductsTest, AreThoseThatGgmlHasForSeveralVectors) {
  for (const int64_t vectors : {1, 2, 3, 4, 5, 6, 7, 8}) {
    for (const ProductShape shape :
         {ProductShape{GetParam(), 64, 132, vectors}, ProductShape{GetParam(), 1024, 8, vectors},
          ProductShape{GetParam(), 32, 4, vectors}}) {
      for (const int threads : {1, 2, 3}) {
        RandomProduct ours(shape);
        ASSERT_TRUE(HasFloatProducts(ours.tensor()));
        BecomeCustom(ours.tensor(), &ComputeFloatProducts, nullptr);
        ProductShape several = shape;
        several.vectors = 9;
        std::vector<float> theirs = RandomProduct(several).Compute(threads);
        theirs.resize(static_cast<size_t>(shape.rows * vectors));
        ASSERT_EQ(ours.Compute(threads), theirs)
            << shape.columns << " columns, " << shape.rows << " rows, " << vectors << " vectors, "
            << threads << " threads";
      }
    }
  }
}

TEST_P(FloatProductsTest, AreNotOfWhatGgmlMultipliesInAnotherOrder) {
  EXPECT_FALSE(HasFloatProducts(RandomProduct({GetParam(), 32, 6, 2}).tensor()));
  EXPECT_FALSE(HasFloatProducts(RandomProduct({GetParam(), 48, 4, 2}).tensor()));
  EXPECT_FALSE(HasFloatProducts(RandomProduct({GetParam(), 32, 4, 9}).tensor()));
  RandomProduct rotation({GetParam(), 32, 4, 2});
  rotation.tensor()->op_params[1] = GGML_HINT_SRC0_IS_HADAMARD;
  EXPECT_FALSE(HasFloatProducts(rotation.tensor()));
}

INSTANTIATE_TEST_SUITE_P(Types, FloatProductsTest,
                         testing::Values(GGML_TYPE_BF16, GGML_TYPE_F16, GGML_TYPE_F32),
                         [](const auto& type) { return ggml_type_name(type.param); });

}  // namespace
}  // namespace portico::llama
