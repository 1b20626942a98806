// What Portico computes itself of the graph that libllama builds for a decoder: its attention, in each layer whose
// operation is plain flash attention over the pool of cells (cell_attention.h). Other operations, and attention with
// what the kernels do not know (ALiBi, heads whose width is no multiple of 16) or with a mask that the graph computes, stay
// libllama's.
//
// libllama rounds float32 keys and values to float16 in front of flash attention. Where the attention is taken over, so is
// that: the cells are read as they are, and the rounding is left out of the graph.
//
// Products of q8_0 matrices are Portico's too, since they are faster (q8_products.h); the bits are libllama's.
//
// Measured with Qwen3-0.6B's shape, q8_0, in docs/llama.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/llama/attention/cell_attention.h"
#include "ggml-backend.h"

namespace portico::llama {

// One a context. It outlives the context and is changed between two batches only.
class DecoderGraph {
 public:
  // From now on all products of matrices have the same bits for a row whatever else is in the batch: those of which ggml's
  // depend on it are replaced (row_products.h). `several`: every batch has at least two rows, and two of logits.
  void MakeProductsInvariant(bool several) {
    invariant_products_ = true;
    several_ = several;
  }

  // Before each batch: the rows that the requests' tokens begin with, and the number of rows; `positions` are the rows',
  // and may have more at the end, whose attention nobody needs. A batch that libllama splits is left to it.
  void Begin(std::span<const int32_t> request_begins, std::span<const int32_t> positions);

  // A ggml_backend_sched_eval_callback; `self` is a DecoderGraph. It never asks for a tensor, so that the graph is
  // computed in one go. libllama has filled the masks when the first operation is announced.
  static bool OnTensor(ggml_tensor* tensor, bool ask, void* self);

  // Operations taken over in the last batch, and those that are not in the kernels' form.
  int32_t layers() const { return layers_; }
  int32_t foreign_layers() const { return foreign_layers_; }
  // Products that MakeProductsInvariant() asks for and that could not be replaced.
  int32_t foreign_products() const { return foreign_products_; }

 private:
  // The cells of one of libllama's caches: which position each was last written for. A model with sliding windows has two
  // caches.
  struct Cells {
    const ggml_tensor* written = nullptr;  // the last batch's indices of cells
    std::vector<int32_t> positions;
  };
  struct Layer {
    float scale = 1;
    float soft_cap = 0;
    const std::vector<QueryBlock>* blocks = nullptr;
  };

  static void Compute(ggml_tensor* to, int thread, int threads, void* layer);
  void TakeOver(ggml_tensor* tensor);
  void NoteCells(const ggml_tensor* tensor);
  void TakeOverProduct(ggml_tensor* tensor);
  const std::vector<QueryBlock>* BlocksOf(const ggml_tensor* mask, const ggml_tensor* keys,
                                          int32_t block_queries);
  int64_t rows() const { return static_cast<int64_t>(positions_.size()); }

  std::vector<int32_t> begins_;
  std::vector<int32_t> positions_;
  int32_t layers_ = 0;
  int32_t foreign_layers_ = 0;
  int32_t foreign_products_ = 0;
  bool invariant_products_ = false;
  bool several_ = false;
  // libllama reuses a graph from step to step, with the operations that have been replaced in it, and builds the next one in
  // the same memory. So none is forgotten, and there are as many as places in it that have held attention.
  std::unordered_map<const ggml_tensor*, std::unique_ptr<Layer>> known_;
  // Of this batch, by mask: models with sliding windows have two.
  struct Plan {
    const ggml_tensor* mask = nullptr;
    std::vector<QueryBlock> blocks;
  };
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::unique_ptr<Cells>> caches_;
  std::unordered_map<const ggml_tensor*, Cells*>
      cache_of_;  // by the tensor of a layer's keys or values
};

// The tiles of what any of the block's queries sees. `mask`: float16, `stride` values a query, `cells` of them in use.
// `positions`: of each cell; those that a query sees are different. Where a cell is beyond `positions`, or two that are
// seen are the same, the cells' own order serves.
void FindTiles(const uint16_t* mask, size_t stride, int32_t cells,
               std::span<const int32_t> positions, QueryBlock* block);

}  // namespace portico::llama
