// Attention of a decoder's layer over the cells that a query may see, and no others.
//
// libllama keeps all requests' keys and values in one pool of cells and computes attention between every token of a
// batch and every used cell, under a mask. Its work grows with what others left in the cache. Here a block of queries
// of one request walks the runs of cells that its mask shows. Four layers of Qwen3-0.6B's shape, q8_0, one thread, 1,024 new
// tokens: beside 14,000 cells of others they are computed at 609 tokens/s, in an empty cache at 610; libllama's attention
// falls from 528 to 329 (docs/llama.md).
//
// The other way was a stream of libllama's own for each request, with a fixed share of the cells. llama-server answers 8
// chats of 1,000 new tokens in 92 s with streams and in 138 s with one pool, so they cure the same fault; but a prefix would
// be copied for every request that shares it, and a request could not have more cells than its share.
//
// Blocks with few rows (decoding: one query, the heads that share a key) take dot products along the head's columns.
// Others keep 16 rows in the lanes of a vector: scores, maxima and sums of 16 rows at once, without a transposed copy of
// the keys and without sums across lanes. Both pass over the cells once, in tiles, with a running maximum (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018). Sums are float32.
//
// A row's result is the same bits in every block, wherever its cells lie: tiles are of fixed positions, and both kinds of
// blocks add in the same order (kFold). So an answer does not depend on which requests share its steps, on how its prompt
// was cut, or on what the cache holds. It costs the many rows' scores an addition for each 16 columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ggml.h"

namespace portico::llama {

inline constexpr int32_t kTileCells = 64;

// The cells of kTileCells positions in a row, the first of which is a multiple of kTileCells. kNoCell: no query of the
// block sees one of this position.
inline constexpr int32_t kNoCell = -1;
struct CellTile {
  std::array<int32_t, kTileCells> cells;
  int32_t count = 0;    // of `cells` that are filled in
  bool masked = false;  // not every query of the block sees each of them
};

// Queries [begin, end) of the batch, all of one request, and what any of them sees.
struct QueryBlock {
  int32_t begin = 0;
  int32_t end = 0;
  std::vector<CellTile> tiles;  // by position
};

// Keys or values of all cells: a cell's row for a head is `columns` values of `type`.
struct CellRows {
  const char* data = nullptr;
  ggml_type type = GGML_TYPE_F16;
  size_t cell_stride = 0;  // in bytes
  size_t head_stride = 0;
  int32_t columns = 0;  // a multiple of 16
};

// One layer of one batch.
struct LayerAttention {
  const char* queries = nullptr;  // float32, keys.columns for each query and head
  size_t query_stride = 0;        // in bytes
  size_t query_head_stride = 0;
  CellRows keys;
  CellRows values;
  const uint16_t* mask = nullptr;  // float16 for each query and cell: 0, or minus infinity
  size_t mask_stride = 0;          // in values
  const float* sinks =
      nullptr;  // for each head a score that takes its share and adds nothing; null: none
  int32_t heads = 0;
  int32_t key_heads = 0;  // divides heads: head h reads keys and values of h / (heads / key_heads)
  float scale = 1;
  float soft_cap = 0;    // scores become cap * tanh(score / cap); 0: none
  float* out = nullptr;  // [query][head][values.columns]
};

// Memory that one thread lends to its calls.
struct CellAttentionScratch {
  std::vector<float> queries, keys, values, scores, sums, most, totals;
};

// True if the kernels can read rows of this type and width.
bool CanAttend(const CellRows& rows);

// Queries that should form a block, so that its rows fill the vectors.
int32_t QueriesOfBlock(int32_t heads, int32_t key_heads);

// Heads [begin, end), which share a key.
struct HeadRange {
  int32_t begin = 0;
  int32_t end = 0;
};

// Computes the block's results of these heads.
void AttendCells(const LayerAttention& layer, const QueryBlock& block, HeadRange heads,
                 CellAttentionScratch* scratch);

}  // namespace portico::llama
