#include "engine/llama/attention/cell_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "engine/llama/attention/decoder_graph.h"
#include "engine/llama/attention/head_parts.h"

namespace portico::llama {
namespace {

constexpr uint16_t kMinusInfinity = 0xfc00;

struct Shape {
  int32_t queries, cells, heads, key_heads, columns;
  ggml_type type = GGML_TYPE_F16;
  float soft_cap = 0;
  bool sinks = false;
};

// One layer with random numbers, and what it gives by the definition, in double.
struct Case : Shape {
  Case(const Shape& shape, uint32_t seed) : Shape(shape) { Fill(seed); }

  std::vector<float> q, k, v, sink;
  std::vector<ggml_fp16_t> k16, v16;
  std::vector<uint16_t> mask;
  std::vector<int32_t> positions;  // of the cells; empty: they are not known
  std::vector<float> out;

  void Fill(uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto numbers = [&](size_t count) {
      std::vector<float> made(count);
      for (float& x : made) x = normal(random);
      return made;
    };
    q = numbers(static_cast<size_t>(queries) * heads * columns);
    k = numbers(static_cast<size_t>(cells) * key_heads * columns);
    v = numbers(static_cast<size_t>(cells) * key_heads * columns);
    sink = numbers(static_cast<size_t>(heads));
    k16.resize(k.size());
    v16.resize(v.size());
    ggml_fp32_to_fp16_row(k.data(), k16.data(), static_cast<int64_t>(k.size()));
    ggml_fp32_to_fp16_row(v.data(), v16.data(), static_cast<int64_t>(v.size()));
    if (type == GGML_TYPE_F16) {
      ggml_fp16_to_fp32_row(k16.data(), k.data(), static_cast<int64_t>(k.size()));
      ggml_fp16_to_fp32_row(v16.data(), v.data(), static_cast<int64_t>(v.size()));
    }
    mask.assign(static_cast<size_t>(queries) * cells, kMinusInfinity);
    out.assign(static_cast<size_t>(queries) * heads * columns, NAN);
  }

  void Show(int32_t query, int32_t cell) { mask[static_cast<size_t>(query) * cells + cell] = 0; }

  LayerAttention Layer() {
    const bool half = type == GGML_TYPE_F16;
    const size_t width = half ? 2 : 4;
    LayerAttention layer;
    layer.queries = reinterpret_cast<const char*>(q.data());  // [query][head][column]
    layer.query_stride = static_cast<size_t>(heads) * columns * 4;
    layer.query_head_stride = static_cast<size_t>(columns) * 4;
    const auto rows = [&](const void* data) {
      return CellRows{static_cast<const char*>(data), type,
                      static_cast<size_t>(key_heads) * columns * width,
                      static_cast<size_t>(columns) * width, columns};
    };
    layer.keys = rows(half ? static_cast<const void*>(k16.data()) : k.data());
    layer.values = rows(half ? static_cast<const void*>(v16.data()) : v.data());
    layer.mask = mask.data();
    layer.mask_stride = static_cast<size_t>(cells);
    layer.sinks = sinks ? sink.data() : nullptr;
    layer.heads = heads;
    layer.key_heads = key_heads;
    layer.scale = 1.0f / std::sqrt(static_cast<float>(columns));
    layer.soft_cap = soft_cap;
    layer.out = out.data();
    return layer;
  }

  // As `threads` threads would.
  void Attend(int32_t block_queries, int32_t threads = 1) {
    const LayerAttention layer = Layer();
    CellAttentionScratch scratch;
    for (int32_t begin = 0; begin < queries; begin += block_queries) {
      QueryBlock block{begin, std::min(begin + block_queries, queries), {}};
      FindTiles(mask.data(), static_cast<size_t>(cells), cells, positions, &block);
      const HeadParts parts(heads, key_heads, 1, threads);
      for (size_t i = 0; i < parts.count(); ++i) {
        AttendCells(layer, block, parts.heads_of(i), &scratch);
      }
    }
  }

  double GreatestError() const {
    const double scale = 1.0 / std::sqrt(static_cast<double>(columns));
    double greatest = 0;
    for (int32_t query = 0; query < queries; ++query) {
      for (int32_t head = 0; head < heads; ++head) {
        const int32_t key_head = head / (heads / key_heads);
        std::vector<double> sum(static_cast<size_t>(columns));
        double total = sinks ? std::exp(static_cast<double>(sink[head])) : 0;
        for (int32_t cell = 0; cell < cells; ++cell) {
          if (mask[static_cast<size_t>(query) * cells + cell] != 0) continue;
          double score = 0;
          for (int32_t c = 0; c < columns; ++c) {
            score += static_cast<double>(q[(query * heads + head) * columns + c]) *
                     k[(cell * key_heads + key_head) * columns + c];
          }
          score *= scale;
          if (soft_cap > 0) score = soft_cap * std::tanh(score / soft_cap);
          total += std::exp(score);
          for (int32_t c = 0; c < columns; ++c) {
            sum[c] += std::exp(score) * v[(cell * key_heads + key_head) * columns + c];
          }
        }
        for (int32_t c = 0; c < columns; ++c) {
          greatest = std::max(greatest,
                              std::abs(sum[c] / total - out[(query * heads + head) * columns + c]));
        }
      }
    }
    return greatest;
  }
};

// Query i sees every third cell of the first `before`, and from there on a cell a query up to its own.
void ShowScattered(Case* c, int32_t before) {
  for (int32_t query = 0; query < c->queries; ++query) {
    for (int32_t cell = 0; cell < before; cell += 3) c->Show(query, cell);
    for (int32_t i = 0; i <= query; ++i) c->Show(query, before + i);
  }
}

TEST(CellAttention, EqualsTheDefinitionForEveryShapeOfBlock) {
  uint32_t seed = 1;
  for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16}) {
    for (const auto& [heads, key_heads] : {std::pair{2, 2}, {4, 1}, {9, 1}}) {
      for (const int32_t columns : {16, 48, 128}) {
        for (const int32_t queries : {1, 5, 70}) {
          Case c({queries, 333 + queries, heads, key_heads, columns, type}, seed++);
          ShowScattered(&c, 333);
          c.Attend(QueriesOfBlock(heads, key_heads));
          EXPECT_LT(c.GreatestError(), 2e-6) << heads << " " << columns << " " << queries;
        }
      }
    }
  }
}

TEST(CellAttention, AppliesASoftCapAndSinks) {
  for (const int32_t queries : {1, 40}) {
    Case c({queries, 200 + queries, 4, 2, 64, GGML_TYPE_F32, 5.0f, true}, 7);
    ShowScattered(&c, 200);
    c.Attend(16);
    EXPECT_LT(c.GreatestError(), 2e-6);
  }
}

TEST(CellAttention, ForgetsTilesThatAQueryDoesNotSee) {
  // A sliding window: later queries of a block see nothing of its first tiles.
  Case c({64, 400, 2, 2, 32}, 9);
  for (int32_t query = 0; query < c.queries; ++query) {
    for (int32_t cell = 4 * query; cell < 4 * query + 100; ++cell) c.Show(query, cell);
  }
  c.Attend(32);
  EXPECT_LT(c.GreatestError(), 2e-6);
}

// The last `queries` positions ask, the others are cached; each cell of `order` holds the position of its place in it.
Case Sequence(const Shape& shape, const std::vector<int32_t>& order, int32_t window) {
  Case c(shape, 11);
  const Case values(shape, 12);
  const auto row = static_cast<size_t>(shape.key_heads) * shape.columns;
  c.positions.assign(order.size(), 0);
  const auto length = static_cast<int32_t>(order.size());
  for (int32_t position = 0; position < length; ++position) {
    const auto cell = static_cast<size_t>(order[static_cast<size_t>(position)]);
    c.positions[cell] = position;
    const size_t from = static_cast<size_t>(position) * row, to = cell * row;
    std::copy_n(values.k.begin() + static_cast<ptrdiff_t>(from), row,
                c.k.begin() + static_cast<ptrdiff_t>(to));
    std::copy_n(values.v.begin() + static_cast<ptrdiff_t>(from), row,
                c.v.begin() + static_cast<ptrdiff_t>(to));
    std::copy_n(values.k16.begin() + static_cast<ptrdiff_t>(from), row,
                c.k16.begin() + static_cast<ptrdiff_t>(to));
    std::copy_n(values.v16.begin() + static_cast<ptrdiff_t>(from), row,
                c.v16.begin() + static_cast<ptrdiff_t>(to));
    for (int32_t query = 0; query < shape.queries; ++query) {
      const int32_t own = length - shape.queries + query;
      if (position <= own && position > own - window) c.Show(query, static_cast<int32_t>(cell));
    }
  }
  return c;
}

// Answers changed with the load: a token's attention was added up in another order when it was decoded than when it was
// part of a prompt, and by where its cells lay.
TEST(CellAttention, ARowHasTheSameBitsInEveryBlockAndWhereverItsCellsLie) {
  constexpr int32_t kLength = 300, kQueries = 70;
  std::vector<int32_t> in_order(kLength);
  std::iota(in_order.begin(), in_order.end(), 0);
  std::vector<int32_t> shuffled = in_order;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(3));
  for (const auto& [heads, key_heads] : {std::pair{2, 2}, {4, 1}, {9, 1}}) {
    for (const int32_t columns : {16, 48, 128}) {
      const int32_t window = columns == 48 ? 90 : kLength;
      const float soft_cap = columns == 48 ? 5.0f : 0.0f;
      const Shape shape{kQueries, kLength,       heads,    key_heads,
                        columns,  GGML_TYPE_F16, soft_cap, true};
      Case whole = Sequence(shape, in_order, window);
      whole.Attend(QueriesOfBlock(heads, key_heads));
      Case cut = Sequence(shape, shuffled, window);
      for (const int32_t block_queries : {1, 2, 5, 23}) {
        for (const int32_t threads : {1, 3, 16}) {
          std::fill(cut.out.begin(), cut.out.end(), NAN);
          cut.Attend(block_queries, threads);
          EXPECT_EQ(cut.out, whole.out)
              << heads << " " << columns << " " << block_queries << " " << threads;
        }
      }
    }
  }
}

TEST(CellTiles, AreOfFixedPositionsAndSayWhereNotAllSeeThem) {
  std::vector<uint16_t> mask(2 * 200, kMinusInfinity);
  std::vector<int32_t> positions(200, -1);
  const auto show = [&](int32_t cell, int32_t position, bool both) {
    positions[static_cast<size_t>(cell)] = position;
    mask[200 + static_cast<size_t>(cell)] = 0;
    if (both) mask[static_cast<size_t>(cell)] = 0;
  };
  for (int32_t i = 0; i < 64; ++i) show(150 - i, 64 + i, true);  // a whole tile, backwards
  show(3, 128, true);
  show(4, 129, false);
  QueryBlock block{0, 2, {}};
  FindTiles(mask.data(), 200, 200, positions, &block);
  ASSERT_EQ(block.tiles.size(), 2u);
  EXPECT_EQ(block.tiles[0].count, 64);
  EXPECT_EQ(block.tiles[0].cells[0], 150);
  EXPECT_EQ(block.tiles[0].cells[63], 87);
  EXPECT_FALSE(block.tiles[0].masked);
  EXPECT_EQ(block.tiles[1].count, 2);
  EXPECT_EQ(block.tiles[1].cells[1], 4);
  EXPECT_TRUE(block.tiles[1].masked);

  FindTiles(mask.data(), 200, 200, {}, &block);  // by the cells' order
  ASSERT_EQ(block.tiles.size(), 2u);
  EXPECT_EQ(block.tiles[0].cells[0], 3);
  EXPECT_EQ(block.tiles[0].cells[2], 87);
}

TEST(CellTiles, BeginWithinAWindow) {
  std::vector<uint16_t> mask(100, 0);
  std::vector<int32_t> positions(100);
  std::iota(positions.begin(), positions.end(), 70);
  QueryBlock block{0, 1, {}};
  FindTiles(mask.data(), 100, 100, positions, &block);
  ASSERT_EQ(block.tiles.size(), 2u);
  EXPECT_EQ(block.tiles[0].cells[5], kNoCell);
  EXPECT_EQ(block.tiles[0].cells[6], 0);
  EXPECT_TRUE(block.tiles[0].masked);
  EXPECT_FALSE(block.tiles[1].masked);
}

}  // namespace
}  // namespace portico::llama
