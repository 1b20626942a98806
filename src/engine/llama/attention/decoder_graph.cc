#include "engine/llama/attention/decoder_graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/llama/attention/custom_operation.h"
#include "engine/llama/attention/float_products.h"
#include "engine/llama/attention/head_parts.h"
#include "engine/llama/attention/q8_products.h"
#include "engine/llama/attention/row_products.h"

namespace portico::llama {
namespace {

CellRows RowsOf(const ggml_tensor* t) {
  return {static_cast<const char*>(t->data), t->type, t->nb[1], t->nb[2],
          static_cast<int32_t>(t->ne[0])};
}

LayerAttention LayerOf(const ggml_tensor* t) {
  const ggml_tensor *q = t->src[0], *mask = t->src[3], *sinks = t->src[4];
  LayerAttention layer;
  layer.queries = static_cast<const char*>(q->data);
  layer.query_stride = q->nb[1];
  layer.query_head_stride = q->nb[2];
  layer.keys = RowsOf(t->src[1]);
  layer.values = RowsOf(t->src[2]);
  layer.mask = static_cast<const uint16_t*>(mask->data);
  layer.mask_stride = mask->nb[1] / sizeof(uint16_t);
  if (sinks != nullptr) layer.sinks = static_cast<const float*>(sinks->data);
  layer.heads = static_cast<int32_t>(q->ne[2]);
  layer.key_heads = static_cast<int32_t>(t->src[1]->ne[2]);
  layer.out = static_cast<float*>(t->data);
  return layer;
}

// What was rounded from float32 to float16, or the tensor itself.
ggml_tensor* Unrounded(ggml_tensor* t) {
  const bool rounded =
      t->op == GGML_OP_CPY && t->type == GGML_TYPE_F16 && t->src[0]->type == GGML_TYPE_F32;
  return rounded ? t->src[0] : t;
}

// What libllama has filled in before the graph is computed. Models that choose the tokens they look at (DeepSeek-V3.2,
// GLM-5) make a mask of their own for each layer, which is not there yet when the layer is announced.
bool IsInput(const ggml_tensor* t) {
  return t->op == GGML_OP_NONE && t->view_src == nullptr && t->data != nullptr;
}

// Attention in the form that AttendCells() reads.
bool IsOurForm(const ggml_tensor* t, int64_t tokens) {
  const ggml_tensor *q = t->src[0], *k = Unrounded(t->src[1]), *v = Unrounded(t->src[2]),
                    *mask = t->src[3], *sinks = t->src[4];
  if (mask == nullptr || mask->type != GGML_TYPE_F16 || !IsInput(mask)) return false;
  if (q->type != GGML_TYPE_F32 || q->nb[0] != sizeof(float) || !ggml_is_contiguous(t)) return false;
  if (sinks != nullptr && (sinks->type != GGML_TYPE_F32 || !ggml_is_contiguous(sinks))) {
    return false;
  }
  const auto rows_lie_close = [](const ggml_tensor* x) {
    return x->nb[0] == ggml_type_size(x->type) && x->ne[3] == 1 && CanAttend(RowsOf(x));
  };
  return q->ne[1] == tokens && q->ne[3] == 1 && mask->ne[1] >= tokens && mask->ne[2] == 1 &&
         mask->ne[3] == 1 && mask->nb[0] == sizeof(uint16_t) && mask->ne[0] == k->ne[1] &&
         q->ne[0] == k->ne[0] && v->ne[1] == k->ne[1] && v->ne[2] == k->ne[2] &&
         q->ne[2] % k->ne[2] == 0 && rows_lie_close(k) && rows_lie_close(v);
}

// A cell that somebody sees.
struct Seen {
  int32_t cell = 0;
  int32_t position = 0;
  bool masked = false;
};

// False: two have the same position.
bool FillTiles(std::span<const Seen> seen, std::vector<CellTile>* tiles) {
  tiles->clear();
  if (seen.empty()) return true;
  const auto tile_of = [](const Seen& s) { return s.position / kTileCells; };
  int32_t first = tile_of(seen[0]), last = first;
  for (const Seen& s : seen) {
    first = std::min(first, tile_of(s));
    last = std::max(last, tile_of(s));
  }
  tiles->resize(static_cast<size_t>(last - first) + 1);
  for (CellTile& tile : *tiles) tile.cells.fill(kNoCell);
  std::vector<int32_t> filled(tiles->size());
  for (const Seen& s : seen) {
    const auto at = static_cast<size_t>(tile_of(s) - first);
    CellTile& tile = (*tiles)[at];
    int32_t& cell = tile.cells[static_cast<size_t>(s.position % kTileCells)];
    if (cell != kNoCell) return false;
    cell = s.cell;
    tile.count = std::max(tile.count, s.position % kTileCells + 1);
    tile.masked |= s.masked;
    ++filled[at];
  }
  for (size_t i = 0; i < tiles->size(); ++i) (*tiles)[i].masked |= filled[i] < (*tiles)[i].count;
  std::erase_if(*tiles, [](const CellTile& tile) { return tile.count == 0; });
  return true;
}

}  // namespace

void FindTiles(const uint16_t* mask, size_t stride, int32_t cells,
               std::span<const int32_t> positions, QueryBlock* block) {
  // By the first query and the last: with causal masks and windows a cell that neither of them sees is seen by a query
  // between them only if it is newer than the first and, under a window, older than the last can see. So all are read.
  thread_local std::vector<uint16_t> some, all;
  thread_local std::vector<Seen> seen;
  some.assign(static_cast<size_t>(cells), 0);  // 1: somebody sees the cell
  all.assign(static_cast<size_t>(cells), 1);   // 1: everybody does
  for (int32_t query = block->begin; query < block->end; ++query) {
    const uint16_t* row = mask + static_cast<size_t>(query) * stride;
    for (size_t i = 0; i < some.size(); ++i) {
      const uint16_t sees = (row[i] & 0x7fff) == 0 ? 1 : 0;
      some[i] |= sees;
      all[i] &= sees;
    }
  }
  seen.clear();
  bool placed = true;
  for (int32_t cell = 0; cell < cells; ++cell) {
    const auto at = static_cast<size_t>(cell);
    if (cell % 16 == 0 && cell + 16 <= cells) {  // most cells are other requests'
      uint64_t four[4];
      std::memcpy(four, some.data() + at, sizeof(four));
      if ((four[0] | four[1] | four[2] | four[3]) == 0) {
        cell += 15;
        continue;
      }
    }
    if (some[at] == 0) continue;
    const int32_t position = at < positions.size() ? positions[at] : -1;
    placed &= position >= 0;
    seen.push_back({cell, position, all[at] == 0});
  }
  if (placed && FillTiles(seen, &block->tiles)) return;
  for (size_t i = 0; i < seen.size(); ++i) seen[i].position = static_cast<int32_t>(i);
  FillTiles(seen, &block->tiles);
}

void DecoderGraph::Begin(std::span<const int32_t> request_begins,
                         std::span<const int32_t> positions) {
  begins_.assign(request_begins.begin(), request_begins.end());
  positions_.assign(positions.begin(), positions.end());
  layers_ = foreign_layers_ = foreign_products_ = 0;
  plans_.clear();
  for (const auto& cache : caches_) cache->written = nullptr;
}

// The batch's keys or values are about to be written: the indices tell into which cells.
void DecoderGraph::NoteCells(const ggml_tensor* tensor) {
  const ggml_tensor* indices = tensor->src[1];
  if (tensor->view_src == nullptr || indices->type != GGML_TYPE_I64 || !IsInput(indices) ||
      ggml_nelements(indices) != rows()) {
    return;
  }
  Cells*& cache = cache_of_[tensor->view_src];
  if (cache == nullptr) {
    const auto same = std::find_if(caches_.begin(), caches_.end(),
                                   [&](const auto& other) { return other->written == indices; });
    cache =
        same != caches_.end() ? same->get() : caches_.emplace_back(std::make_unique<Cells>()).get();
  }
  if (cache->written == indices) return;
  cache->written = indices;
  const auto* cells = static_cast<const int64_t*>(indices->data);
  for (size_t i = 0; i < positions_.size(); ++i) {
    const auto cell = static_cast<size_t>(cells[i]);
    if (cell >= cache->positions.size()) cache->positions.resize(cell + 1, -1);
    cache->positions[cell] = positions_[i];
  }
}

const std::vector<QueryBlock>* DecoderGraph::BlocksOf(const ggml_tensor* mask,
                                                      const ggml_tensor* keys,
                                                      int32_t block_queries) {
  for (const auto& plan : plans_) {
    if (plan->mask == mask) return &plan->blocks;
  }
  const auto cache = cache_of_.find(keys->view_src);
  std::span<const int32_t> positions;
  if (cache != cache_of_.end()) positions = cache->second->positions;
  auto plan = std::make_unique<Plan>();
  plan->mask = mask;
  for (size_t i = 0; i + 1 < begins_.size(); ++i) {
    for (int32_t begin = begins_[i]; begin < begins_[i + 1]; begin += block_queries) {
      QueryBlock block{begin, std::min(begin + block_queries, begins_[i + 1]), {}};
      FindTiles(static_cast<const uint16_t*>(mask->data), mask->nb[1] / sizeof(uint16_t),
                static_cast<int32_t>(mask->ne[0]), positions, &block);
      plan->blocks.push_back(std::move(block));
    }
  }
  plans_.push_back(std::move(plan));
  return &plans_.back()->blocks;
}

void DecoderGraph::TakeOver(ggml_tensor* tensor) {
  const auto known = known_.find(tensor);
  Layer* layer = nullptr;
  if (tensor->op == GGML_OP_FLASH_ATTN_EXT) {
    float params[3];  // scale, ALiBi's slope, soft cap
    std::memcpy(params, tensor->op_params, sizeof(params));
    if (begins_.empty() || params[1] != 0 || !IsOurForm(tensor, rows())) {
      ++foreign_layers_;
      return;
    }
    for (const int i : {1, 2}) {
      ggml_tensor* const rounded = tensor->src[i];
      tensor->src[i] = Unrounded(rounded);
      if (tensor->src[i] != rounded) rounded->op = GGML_OP_NONE;
    }
    auto& slot = known_[tensor];
    slot = std::make_unique<Layer>();
    slot->scale = params[0];
    slot->soft_cap = params[2];
    layer = slot.get();
    BecomeCustom(tensor, &DecoderGraph::Compute, layer);
  } else if (known != known_.end()) {  // libllama makes no custom operation itself
    layer = known->second.get();
  } else {
    return;
  }
  const auto heads = static_cast<int32_t>(tensor->src[0]->ne[2]);
  const auto key_heads = static_cast<int32_t>(tensor->src[1]->ne[2]);
  layer->blocks = BlocksOf(tensor->src[3], tensor->src[1], QueriesOfBlock(heads, key_heads));
  ++layers_;
}

// One thread's part.
void DecoderGraph::Compute(ggml_tensor* to, int thread, int threads, void* self) {
  thread_local CellAttentionScratch scratch;
  const auto& of = *static_cast<const Layer*>(self);
  LayerAttention layer = LayerOf(to);
  layer.scale = of.scale;
  layer.soft_cap = of.soft_cap;
  const HeadParts parts(layer.heads, layer.key_heads, of.blocks->size(), threads);
  for (auto i = static_cast<size_t>(thread); i < parts.count(); i += static_cast<size_t>(threads)) {
    AttendCells(layer, (*of.blocks)[parts.block_of(i)], parts.heads_of(i), &scratch);
  }
  // Rows beyond the blocks are nobody's, but the layers behind this one read them.
  if (thread != 0 || of.blocks->empty()) return;
  const auto computed = static_cast<size_t>(of.blocks->back().end);
  const size_t row = static_cast<size_t>(to->ne[0]) * static_cast<size_t>(to->ne[1]);
  std::fill(layer.out + computed * row, layer.out + static_cast<size_t>(to->ne[2]) * row, 0.0f);
}

void DecoderGraph::TakeOverProduct(ggml_tensor* tensor) {
  if (tensor->op == GGML_OP_MUL_MAT) {
    const ggml_custom_op_t ours = HasQ8Products(tensor)      ? &ComputeQ8Products
                                  : HasFloatProducts(tensor) ? &ComputeFloatProducts
                                                             : nullptr;
    if (ours != nullptr) {
      known_.erase(tensor);  // of an earlier graph in the same memory
      BecomeCustom(tensor, ours, nullptr);
      return;
    }
  }
  if (!invariant_products_) return;
  if (tensor->op == GGML_OP_MUL_MAT_ID) {  // experts: by dot products, but for K quantizations
    if (!IsBatchInvariant(tensor, /*several=*/true)) ++foreign_products_;
    return;
  }
  if (IsBatchInvariant(tensor, several_)) return;
  if (HasRowProducts(tensor)) {
    known_.erase(tensor);  // of an earlier graph in the same memory
    BecomeCustom(tensor, &ComputeRowProducts, nullptr);
  } else {
    ++foreign_products_;
  }
}

bool DecoderGraph::OnTensor(ggml_tensor* tensor, bool ask, void* self) {
  if (!ask) return true;
  auto* graph = static_cast<DecoderGraph*>(self);
  switch (tensor->op) {
    case GGML_OP_SET_ROWS:
      graph->NoteCells(tensor);
      break;
    case GGML_OP_FLASH_ATTN_EXT:
    case GGML_OP_CUSTOM:
      graph->TakeOver(tensor);
      break;
    case GGML_OP_MUL_MAT:
    case GGML_OP_MUL_MAT_ID:
      graph->TakeOverProduct(tensor);
      break;
    default:
      break;
  }
  return false;
}

}  // namespace portico::llama
