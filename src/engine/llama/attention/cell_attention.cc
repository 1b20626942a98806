#include "engine/llama/attention/cell_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "engine/vector_math.h"
#include "ggml-cpu.h"

namespace portico::llama {
namespace {

constexpr int32_t kRows = 64;    // of a block: queries times the heads that share a key
constexpr int32_t kFewRows = 8;  // up to here dot products are faster
constexpr float kHidden = -1e30f;
constexpr size_t kCacheLine = 64;

// What the inner loops multiply. Wider vectors than the processor's registers stay in memory: with Floats (64 bytes) these
// loops took nine times as long under AVX2.
constexpr int32_t kHalf = 8;
using Half = float __attribute__((vector_size(kHalf * sizeof(float))));

using portico::Load;
using portico::Store;
PORTICO_INLINE void Load(const float* from, Half* to) { std::memcpy(to, from, sizeof(*to)); }
PORTICO_INLINE void Store(const Half& from, float* to) { std::memcpy(to, &from, sizeof(from)); }

// Four rows and two vectors are computed together: eight sums hide the latency of a multiplication.
constexpr int32_t kTogether = 4;
constexpr int32_t kVectors = 2;
constexpr auto kStep = static_cast<int32_t>(kLanes);
static_assert(kVectors * kHalf == kStep);

int32_t Padded(int32_t rows) { return (rows + kStep - 1) / kStep * kStep; }

// The sum of 16 numbers as a tree: 0 and 8, 4 and 12, then these sums, and so on. Sums of many rows, one a lane, grow along
// it: its leaves come in this order, and each is added to all finished trees of its size.
constexpr int32_t kFold[kStep] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
constexpr int32_t kLevels = 5;

PORTICO_INLINE float FoldSum(const Half& low, const Half& high) {
  Half v = low + high;
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
  return v[0];
}

// cap * tanh(x / cap), by exp of what is not positive.
PORTICO_INLINE void SoftCap(float cap, Floats* v) {
  const Floats x = *v / cap;
  const Floats size = x < 0.0f ? -x : x;
  Floats e = size * -2.0f;
  Exp(&e);
  const Floats t = (1.0f - e) / (1.0f + e);
  *v = (x < 0.0f ? -t : t) * cap;
}

// Rows of a head in the cells of a tile.
struct TileRows {
  TileRows(const CellRows& rows, int32_t head, const CellTile& of)
      : tile(of),
        data(rows.data + static_cast<size_t>(head) * rows.head_stride),
        stride(rows.cell_stride),
        bytes(ggml_row_size(rows.type, rows.columns)) {}

  void Prefetch(int32_t i) const {
    if (i >= tile.count) return;
    const int32_t cell = tile.cells[static_cast<size_t>(i)];
    if (cell == kNoCell) return;
    const char* row = data + static_cast<size_t>(cell) * stride;
    for (size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(row + at);
  }

  const CellTile& tile;
  const char* data;
  size_t stride, bytes;
};

// The tile's rows of a head in float32, without gaps. Meanwhile those of `next` are fetched: a head's rows lie apart, so that
// the processor does not foresee them, and what a step of decoding waits for is memory.
void ReadRows(const CellRows& rows, int32_t head, const CellTile& tile, const TileRows& next,
              float* to) {
  const char* head_rows = rows.data + static_cast<size_t>(head) * rows.head_stride;
  const auto columns = static_cast<size_t>(rows.columns);
  for (int32_t i = 0; i < tile.count; ++i, to += columns) {
    next.Prefetch(i);
    const int32_t cell = tile.cells[static_cast<size_t>(i)];
    if (cell == kNoCell) {
      std::fill_n(to, columns, 0.0f);
      continue;
    }
    const char* from = head_rows + static_cast<size_t>(cell) * rows.cell_stride;
    switch (rows.type) {
      case GGML_TYPE_F32:
        std::memcpy(to, from, columns * sizeof(float));
        break;
      case GGML_TYPE_F16:
        ggml_cpu_fp16_to_fp32(reinterpret_cast<const ggml_fp16_t*>(from), to, rows.columns);
        break;
      case GGML_TYPE_BF16:
        ggml_cpu_bf16_to_fp32(reinterpret_cast<const ggml_bf16_t*>(from), to, rows.columns);
        break;
      default:
        ggml_get_type_traits(rows.type)->to_float(from, to, rows.columns);
    }
  }
}

struct Work {
  const LayerAttention& layer;
  const QueryBlock& block;
  int32_t first_head;
  int32_t group;   // heads from it on
  int32_t rows;    // row r: query r / group, head first_head + r % group
  int32_t padded;  // rows, filled up
  CellAttentionScratch& s;

  bool Sees(int32_t row, int32_t cell) const {
    if (cell == kNoCell) return false;
    const auto query = static_cast<size_t>(block.begin + row / group);
    return (layer.mask[query * layer.mask_stride + static_cast<size_t>(cell)] & 0x7fff) == 0;
  }
};

// Many rows: scores[cell][row], queries[column][row], the columns in the order of kFold.

PORTICO_VECTOR_CLONES void ScoreColumns(const float* keys, int32_t columns, int32_t cells,
                                        const float* queries, int32_t padded, float* scores) {
  for (int32_t cell = 0; cell < cells; cell += kTogether) {
    const float* key[kTogether];
    for (int32_t i = 0; i < kTogether; ++i) {
      key[i] = keys + static_cast<size_t>(std::min(cell + i, cells - 1)) * columns;
    }
    for (int32_t row = 0; row < padded; row += kStep) {
      Half trees[kLevels][kTogether][kVectors];
      const float* at = queries + row;
      for (int32_t leaf = 0; leaf < kStep; ++leaf) {
        Half sums[kTogether][kVectors] = {};
        for (int32_t c = kFold[leaf]; c < columns; c += kStep, at += padded) {
          Half low, high;
          Load(at, &low);
          Load(at + kHalf, &high);
          for (int32_t i = 0; i < kTogether; ++i) {
            sums[i][0] += key[i][c] * low;
            sums[i][1] += key[i][c] * high;
          }
        }
        int32_t level = 0;
        for (; (leaf >> level & 1) != 0; ++level) {
          for (int32_t i = 0; i < kTogether; ++i) {
            for (int32_t v = 0; v < kVectors; ++v) sums[i][v] += trees[level][i][v];
          }
        }
        for (int32_t i = 0; i < kTogether; ++i) {
          for (int32_t v = 0; v < kVectors; ++v) trees[level][i][v] = sums[i][v];
        }
      }
      for (int32_t i = 0; i < std::min(kTogether, cells - cell); ++i) {
        for (int32_t v = 0; v < kVectors; ++v) {
          Store(trees[kLevels - 1][i][v],
                scores + static_cast<size_t>(cell + i) * padded + row + v * kHalf);
        }
      }
    }
  }
}

// Scores to weights; most, totals and shares for each row. share: by what earlier sums shrink.
PORTICO_VECTOR_CLONES bool WeighColumns(float soft_cap, int32_t cells, int32_t padded,
                                        float* scores, float* most, float* totals, float* shares) {
  bool shrinks = false;
  for (int32_t row = 0; row < padded; row += kStep) {
    Floats old, max, score, total;
    Load(most + row, &old);
    max = old;
    for (int32_t cell = 0; cell < cells; ++cell) {
      float* at = scores + static_cast<size_t>(cell) * padded + row;
      Load(at, &score);
      if (soft_cap > 0) {
        const Floats raw = score;
        SoftCap(soft_cap, &score);
        score = raw > kHidden ? score : raw;
        Store(score, at);
      }
      max = score > max ? score : max;
    }
    Floats share = old - max;
    Exp(&share);
    Floats trees[kLevels];
    for (int32_t leaf = 0; leaf < kStep; ++leaf) {
      Floats sum = {};
      for (int32_t cell = kFold[leaf]; cell < cells; cell += kStep) {
        float* at = scores + static_cast<size_t>(cell) * padded + row;
        Load(at, &score);
        score -= max;
        Exp(&score);
        sum += score;
        Store(score, at);
      }
      int32_t level = 0;
      for (; (leaf >> level & 1) != 0; ++level) sum += trees[level];
      trees[level] = sum;
    }
    Load(totals + row, &total);
    total = total * share + trees[kLevels - 1];
    Store(max, most + row);
    Store(total, totals + row);
    Store(share, shares + row);
    for (size_t i = 0; i < kLanes; ++i) shrinks |= share[i] != 1.0f;
  }
  return shrinks;
}

PORTICO_VECTOR_CLONES void AddValues(const float* weights, int32_t padded, int32_t cells,
                                     const float* values, int32_t columns, int32_t rows,
                                     const float* shares, bool shrinks, float* sums) {
  for (int32_t row = 0; row < rows; row += kTogether) {
    float* to[kTogether];
    for (int32_t i = 0; i < kTogether; ++i) {
      to[i] = sums + static_cast<size_t>(row + i) * columns;  // `sums` has padded rows
    }
    for (int32_t column = 0; column < columns; column += kStep) {
      Half sum[kTogether][kVectors];
      for (int32_t i = 0; i < kTogether; ++i) {
        for (int32_t v = 0; v < kVectors; ++v) {
          Load(to[i] + column + v * kHalf, &sum[i][v]);
          if (shrinks) sum[i][v] *= shares[row + i];
        }
      }
      const float* value = values + column;
      const float* weight = weights + row;
      for (int32_t cell = 0; cell < cells; ++cell, value += columns, weight += padded) {
        Half low, high;
        Load(value, &low);
        Load(value + kHalf, &high);
        for (int32_t i = 0; i < kTogether; ++i) {
          sum[i][0] += weight[i] * low;
          sum[i][1] += weight[i] * high;
        }
      }
      for (int32_t i = 0; i < kTogether; ++i) {
        for (int32_t v = 0; v < kVectors; ++v) Store(sum[i][v], to[i] + column + v * kHalf);
      }
    }
  }
}

void AttendManyRows(Work& w, const CellTile& tile, float* shares) {
  const LayerAttention& layer = w.layer;
  ScoreColumns(w.s.keys.data(), layer.keys.columns, tile.count, w.s.queries.data(), w.padded,
               w.s.scores.data());
  if (tile.masked) {
    for (int32_t cell = 0; cell < tile.count; ++cell) {
      float* scores = w.s.scores.data() + static_cast<size_t>(cell) * w.padded;
      for (int32_t row = 0; row < w.rows; row += w.group) {
        if (!w.Sees(row, tile.cells[static_cast<size_t>(cell)]))
          std::fill_n(scores + row, w.group, kHidden);
      }
    }
  }
  const bool shrinks = WeighColumns(layer.soft_cap, tile.count, w.padded, w.s.scores.data(),
                                    w.s.most.data(), w.s.totals.data(), shares);
  AddValues(w.s.scores.data(), w.padded, tile.count, w.s.values.data(), layer.values.columns,
            w.rows, shares, shrinks, w.s.sums.data());
}

// Few rows: scores[row][cell], queries[row][column].

PORTICO_VECTOR_CLONES void ScoreRow(const float* query, const float* keys, int32_t columns,
                                    int32_t cells, float* scores) {
  for (int32_t cell = 0; cell < cells; cell += kTogether) {
    const float* key[kTogether];
    for (int32_t i = 0; i < kTogether; ++i) {
      key[i] = keys + static_cast<size_t>(std::min(cell + i, cells - 1)) * columns;
    }
    Half sums[kTogether][kVectors] = {};
    for (int32_t c = 0; c < columns; c += kStep) {
      Half q[kVectors], k;
      for (int32_t v = 0; v < kVectors; ++v) Load(query + c + v * kHalf, &q[v]);
      for (int32_t i = 0; i < kTogether; ++i) {
        for (int32_t v = 0; v < kVectors; ++v) {
          Load(key[i] + c + v * kHalf, &k);
          sums[i][v] += k * q[v];
        }
      }
    }
    for (int32_t i = 0; i < kTogether; ++i) scores[cell + i] = FoldSum(sums[i][0], sums[i][1]);
  }
}

// `scores` has room for a whole tile; what is beyond `cells` becomes 0.
PORTICO_VECTOR_CLONES float WeighRow(float soft_cap, int32_t cells, float* scores, float* most,
                                     float* total) {
  Floats v;
  std::fill(scores + cells, scores + kTileCells, kHidden);
  Floats max = Floats{} + *most;
  for (int32_t i = 0; i < kTileCells; i += kStep) {
    Load(scores + i, &v);
    if (soft_cap > 0) {
      const Floats raw = v;
      SoftCap(soft_cap, &v);
      v = raw > kHidden ? v : raw;
      Store(v, scores + i);
    }
    max = v > max ? v : max;
  }
  const float greatest = GreatestOf(max);
  Floats sums = {};
  for (int32_t i = 0; i < kTileCells; i += kStep) {
    Load(scores + i, &v);
    v -= greatest;
    Exp(&v);
    Store(v, scores + i);
    sums += v;
  }
  Floats share = Floats{} + (*most - greatest);
  Exp(&share);
  *most = greatest;
  float lanes[kStep];
  Store(sums, lanes);
  // In vectors, so that it is rounded as in WeighColumns().
  Half low, high;
  Load(lanes, &low);
  Load(lanes + kHalf, &high);
  const float sum = FoldSum(low, high);
  const Floats shrunk = (Floats{} + *total) * share + (Floats{} + sum);
  *total = shrunk[0];
  return share[0];
}

PORTICO_VECTOR_CLONES void AddValuesToRow(const float* weights, int32_t cells, const float* values,
                                          int32_t columns, float share, float* sums) {
  constexpr int32_t kWide = 2 * kTogether;  // vectors; a head's columns may have fewer
  Half v;
  for (int32_t column = 0; column < columns;) {
    Half sum[kWide];
    const int32_t vectors = columns - column >= kWide * kHalf ? kWide : kVectors;
    const float* value = values + column;
    float* to = sums + column;
    for (int32_t i = 0; i < vectors; ++i) {
      Load(to + i * kHalf, &sum[i]);
      sum[i] *= share;
    }
    if (vectors == kWide) {
      for (int32_t cell = 0; cell < cells; ++cell, value += columns) {
        for (int32_t i = 0; i < kWide; ++i) {
          Load(value + i * kHalf, &v);
          sum[i] += weights[cell] * v;
        }
      }
    } else {
      for (int32_t cell = 0; cell < cells; ++cell, value += columns) {
        for (int32_t i = 0; i < kVectors; ++i) {
          Load(value + i * kHalf, &v);
          sum[i] += weights[cell] * v;
        }
      }
    }
    for (int32_t i = 0; i < vectors; ++i) Store(sum[i], to + i * kHalf);
    column += vectors * kHalf;
  }
}

void AttendFewRows(Work& w, const CellTile& tile) {
  const LayerAttention& layer = w.layer;
  for (int32_t row = 0; row < w.rows; ++row) {
    float* scores = w.s.scores.data();
    ScoreRow(w.s.queries.data() + static_cast<size_t>(row) * layer.keys.columns, w.s.keys.data(),
             layer.keys.columns, tile.count, scores);
    if (tile.masked) {
      for (int32_t cell = 0; cell < tile.count; ++cell) {
        if (!w.Sees(row, tile.cells[static_cast<size_t>(cell)])) scores[cell] = kHidden;
      }
    }
    const float share =
        WeighRow(layer.soft_cap, tile.count, scores, &w.s.most[static_cast<size_t>(row)],
                 &w.s.totals[static_cast<size_t>(row)]);
    AddValuesToRow(scores, tile.count, w.s.values.data(), layer.values.columns, share,
                   w.s.sums.data() + static_cast<size_t>(row) * layer.values.columns);
  }
}

// The block's queries times the scale, as rows or, where there are many, as columns.
void ReadQueries(Work& w, bool many) {
  const LayerAttention& layer = w.layer;
  const int32_t columns = layer.keys.columns;
  w.s.queries.assign(static_cast<size_t>(many ? w.padded : w.rows) * columns, 0.0f);
  for (int32_t row = 0; row < w.rows; ++row) {
    const auto query = static_cast<size_t>(w.block.begin + row / w.group);
    const auto head = static_cast<size_t>(w.first_head + row % w.group);
    const auto* from = reinterpret_cast<const float*>(layer.queries + query * layer.query_stride +
                                                      head * layer.query_head_stride);
    if (!many) {
      float* to = w.s.queries.data() + static_cast<size_t>(row) * columns;
      for (int32_t c = 0; c < columns; ++c) to[c] = from[c] * layer.scale;
      continue;
    }
    float* to = w.s.queries.data() + row;
    for (const int32_t first : kFold) {
      for (int32_t c = first; c < columns; c += kStep, to += w.padded) {
        *to = from[c] * layer.scale;
      }
    }
  }
}

// Divides by the totals, in which the sinks have their share.
void WriteResults(const Work& w) {
  const LayerAttention& layer = w.layer;
  const auto columns = static_cast<size_t>(layer.values.columns);
  for (int32_t row = 0; row < w.rows; ++row) {
    const auto query = static_cast<size_t>(w.block.begin + row / w.group);
    const int32_t head = w.first_head + row % w.group;
    const float most = w.s.most[static_cast<size_t>(row)];
    float total = w.s.totals[static_cast<size_t>(row)], share = 1.0f;
    if (layer.sinks != nullptr) {
      const float greatest = std::max(most, layer.sinks[head]);
      share = std::exp(most - greatest);
      total = total * share + std::exp(layer.sinks[head] - greatest);
    }
    const float factor = share / total;
    const float* from = w.s.sums.data() + static_cast<size_t>(row) * columns;
    float* to = layer.out + (query * static_cast<size_t>(layer.heads) + head) * columns;
    for (size_t c = 0; c < columns; ++c) to[c] = from[c] * factor;
  }
}

}  // namespace

bool CanAttend(const CellRows& rows) {
  if (rows.columns <= 0 || rows.columns % static_cast<int32_t>(kLanes) != 0) return false;
  if (rows.type == GGML_TYPE_F32) return true;
  const ggml_type_traits* traits = ggml_get_type_traits(rows.type);
  return traits->to_float != nullptr && rows.columns % traits->blck_size == 0;
}

int32_t QueriesOfBlock(int32_t heads, int32_t key_heads) {
  return std::max(kRows / (heads / key_heads), 1);
}

void AttendCells(const LayerAttention& layer, const QueryBlock& block, HeadRange heads,
                 CellAttentionScratch* scratch) {
  const int32_t key_head = heads.begin / (layer.heads / layer.key_heads);
  const int32_t group = heads.end - heads.begin;
  const int32_t rows = (block.end - block.begin) * group;
  const bool many = rows > kFewRows;
  Work w{layer, block, heads.begin, group, rows, Padded(rows), *scratch};
  const auto padded = static_cast<size_t>(w.padded);
  scratch->keys.resize(static_cast<size_t>(kTileCells) * layer.keys.columns);
  scratch->values.resize(static_cast<size_t>(kTileCells) * layer.values.columns);
  scratch->scores.resize(static_cast<size_t>(kTileCells) * padded);
  scratch->sums.assign(padded * static_cast<size_t>(layer.values.columns), 0.0f);
  scratch->most.assign(padded, kHidden);
  scratch->totals.assign(2 * padded, 0.0f);  // and the shares of a tile
  ReadQueries(w, many);
  for (size_t i = 0; i < block.tiles.size(); ++i) {
    const CellTile& tile = block.tiles[i];
    const CellTile& next = block.tiles[std::min(i + 1, block.tiles.size() - 1)];
    ReadRows(layer.keys, key_head, tile, {layer.values, key_head, tile}, scratch->keys.data());
    ReadRows(layer.values, key_head, tile, {layer.keys, key_head, next}, scratch->values.data());
    if (many) {
      AttendManyRows(w, tile, scratch->totals.data() + padded);
    } else {
      AttendFewRows(w, tile);
    }
  }
  WriteResults(w);
}

}  // namespace portico::llama
