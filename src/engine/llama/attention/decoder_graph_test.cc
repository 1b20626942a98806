#include "engine/llama/attention/decoder_graph.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "ggml-cpu.h"

namespace portico::llama {
namespace {

constexpr int64_t kQueries = 2, kCells = 64, kColumns = 16, kHeads = 4;

// A layer's attention as libllama writes it down: two queries of a sequence over 64 cells, of which the second sees all.
class DecoderGraphTest : public testing::Test {
 protected:
  void SetUp() override { Renew(); }
  void TearDown() override { ggml_free(context_); }

  // The memory of the operations is used again, as libllama does for its next graph.
  void Renew() {
    if (context_ != nullptr) ggml_free(context_);
    context_ = ggml_init({memory_.size(), memory_.data(), /*no_alloc=*/false});
  }

  ggml_tensor* Numbers(ggml_type type, std::array<int64_t, 3> shape) {
    ggml_tensor* made = ggml_new_tensor_3d(context_, type, shape[0], shape[1], shape[2]);
    const auto count = static_cast<size_t>(ggml_nelements(made));
    for (size_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(i * 37 % 101) / 101.0f - 0.5f;
      if (type == GGML_TYPE_F32) {
        static_cast<float*>(made->data)[i] = value;
      } else {
        static_cast<ggml_fp16_t*>(made->data)[i] = ggml_fp32_to_fp16(value);
      }
    }
    return made;
  }

  ggml_tensor* Mask() {
    ggml_tensor* mask = ggml_new_tensor_2d(context_, GGML_TYPE_F16, kCells, kQueries);
    ggml_set_zero(mask);
    static_cast<ggml_fp16_t*>(mask->data)[kCells - 1] = 0xfc00;
    return mask;
  }

  ggml_tensor* Attention(ggml_tensor* mask) {
    ggml_tensor* queries = Numbers(GGML_TYPE_F32, {kColumns, kQueries, kHeads});
    ggml_tensor* keys = Numbers(GGML_TYPE_F16, {kColumns, kCells, 1});
    ggml_tensor* values = Numbers(GGML_TYPE_F16, {kColumns, kCells, 1});
    return ggml_flash_attn_ext(context_, queries, keys, values, mask, 0.25f, 0.0f, 0.0f);
  }

  void Announce(ggml_tensor* tensor) {
    EXPECT_FALSE(DecoderGraph::OnTensor(tensor, /*ask=*/true, &graph_));
  }

  std::vector<float> Compute(ggml_tensor* tensor, int threads) {
    ggml_cgraph* graph = ggml_new_graph(context_);
    ggml_build_forward_expand(graph, tensor);
    EXPECT_EQ(ggml_graph_compute_with_ctx(context_, graph, threads), GGML_STATUS_SUCCESS);
    const auto* data = static_cast<const float*>(tensor->data);
    return {data, data + ggml_nelements(tensor)};
  }

  void Begin() { graph_.Begin(begins_, positions_); }

  std::vector<char> memory_ = std::vector<char>(size_t{4} << 20);
  ggml_context* context_ = nullptr;
  DecoderGraph graph_;
  const std::vector<int32_t> begins_ = {0, kQueries};
  const std::vector<int32_t> positions_ = {kCells - 2, kCells - 1};
};

TEST_F(DecoderGraphTest, TakesOverAttentionAndGivesLibllamasResult) {
  const std::vector<float> theirs = Compute(Attention(Mask()), 1);
  Renew();
  ggml_tensor* attention = Attention(Mask());
  Begin();
  Announce(attention);
  EXPECT_EQ(graph_.layers(), 1);
  EXPECT_EQ(graph_.foreign_layers(), 0);
  const std::vector<float> ours = Compute(attention, 1);
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-3f) << i;
}

// DeepSeek-V3.2 chooses the tokens that a layer looks at: what was read as its mask was what the memory held before, and
// answers changed from request to request.
TEST_F(DecoderGraphTest, LeavesAttentionWhoseMaskTheGraphComputes) {
  ggml_tensor* mask = Mask();
  ggml_tensor* computed = ggml_add(context_, mask, mask);
  ggml_tensor* attention = Attention(computed);
  Begin();
  Announce(computed);
  Announce(attention);
  EXPECT_EQ(graph_.layers(), 0);
  EXPECT_EQ(graph_.foreign_layers(), 1);
  EXPECT_EQ(attention->op, GGML_OP_FLASH_ATTN_EXT);
}

TEST_F(DecoderGraphTest, LeavesAttentionThatSeesAPartOfAComputedMask) {
  ggml_tensor* mask = Mask();
  ggml_tensor* computed = ggml_add(context_, mask, mask);
  ggml_tensor* attention = Attention(ggml_reshape_2d(context_, computed, kCells, kQueries));
  Begin();
  Announce(attention);
  EXPECT_EQ(graph_.layers(), 0);
  EXPECT_EQ(attention->op, GGML_OP_FLASH_ATTN_EXT);
}

TEST_F(DecoderGraphTest, AStepThatLibllamaReusesIsComputedAgainWithItsOwnMask) {
  ggml_tensor* mask = Mask();
  ggml_tensor* attention = Attention(mask);
  Begin();
  Announce(attention);
  const std::vector<float> first = Compute(attention, 1);
  auto* rows = static_cast<ggml_fp16_t*>(mask->data);
  for (int64_t cell = 1; cell < kCells; ++cell)
    rows[cell] = 0xfc00;  // the first query sees one cell only
  Begin();
  Announce(attention);
  EXPECT_EQ(graph_.layers(), 1);
  const std::vector<float> second = Compute(attention, 1);
  const auto* values = static_cast<const ggml_fp16_t*>(attention->src[2]->data);
  for (int64_t c = 0; c < kColumns; ++c) {
    EXPECT_NEAR(second[static_cast<size_t>(c)], ggml_fp16_to_fp32(values[c]), 1e-6f);
  }
  const auto row = static_cast<std::ptrdiff_t>(kColumns * kHeads);
  EXPECT_EQ(std::vector<float>(second.begin() + row, second.end()),
            std::vector<float>(first.begin() + row, first.end()));
}

// An operation of libllama's next graph may lie where a layer's attention lay in the last one.
TEST_F(DecoderGraphTest, ForgetsALayerWhereAProductHasTakenItsPlace) {
  graph_.MakeProductsInvariant(/*several=*/false);
  ggml_tensor* attention = Attention(Mask());
  Begin();
  Announce(attention);
  ASSERT_EQ(graph_.layers(), 1);
  ggml_tensor* matrix = Numbers(GGML_TYPE_F32, {kColumns, 8, 1});
  ggml_tensor* vectors = Numbers(GGML_TYPE_F32, {kColumns, kQueries, 1});
  *attention = *ggml_mul_mat(context_, matrix, vectors);
  Begin();
  Announce(attention);  // becomes Portico's product
  EXPECT_EQ(attention->op, GGML_OP_CUSTOM);
  Begin();
  Announce(attention);  // and the graph is used again
  EXPECT_EQ(graph_.layers(), 0);
}

}  // namespace
}  // namespace portico::llama
