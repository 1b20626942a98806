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
  std::vector<char> k_rows, v_rows;  // k and v in `type`
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
    k_rows = Rounded(&k);
    v_rows = Rounded(&v);
    mask.assign(static_cast<size_t>(queries) * cells, kMinusInfinity);
    out.assign(static_cast<size_t>(queries) * heads * columns, NAN);
  }

  size_t row_size() const {  // of a cell, in bytes
    return static_cast<size_t>(key_heads) * ggml_row_size(type, columns);
  }

  // The values in `type`; they become what is read back of it.
  std::vector<char> Rounded(std::vector<float>* values) const {
    std::vector<char> rows(static_cast<size_t>(cells) * row_size());
    ggml_quantize_chunk(type, values->data(), rows.data(), 0, int64_t{cells} * key_heads, columns,
                        nullptr);
    if (type == GGML_TYPE_F32) return rows;
    ggml_get_type_traits(type)->to_float(rows.data(), values->data(),
                                         static_cast<int64_t>(values->size()));
    return rows;
  }

  void Show(int32_t query, int32_t cell) { mask[static_cast<size_t>(query) * cells + cell] = 0; }

  LayerAttention Layer() {
    LayerAttention layer;
    layer.queries = reinterpret_cast<const char*>(q.data());  // [query][head][column]
    layer.query_stride = static_cast<size_t>(heads) * columns * 4;
    layer.query_head_stride = static_cast<size_t>(columns) * 4;
    const auto rows = [&](const std::vector<char>& data) {
      return CellRows{data.data(), type, row_size(), ggml_row_size(type, columns), columns};
    };
    layer.keys = rows(k_rows);
    layer.values = rows(v_rows);
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

TEST(CellAttention, ReadsCellsOfEveryTypeThatACacheMayHave) {
  for (const ggml_type type : {GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q5_1, GGML_TYPE_Q4_0}) {
    for (const int32_t columns : {32, 128}) {
      for (const int32_t queries : {1, 40}) {
        Case c({queries, 150 + queries, 6, 2, columns, type}, 21);
        ASSERT_TRUE(CanAttend(c.Layer().keys));
        ShowScattered(&c, 150);
        c.Attend(QueriesOfBlock(6, 2));
        EXPECT_LT(c.GreatestError(), 2e-6) << ggml_type_name(type) << " " << columns;
      }
    }
  }
}

TEST(CellAttention, LeavesRowsThatItsVectorsDoNotFit) {
  const auto rows = [](ggml_type type, int32_t columns) {
    return CellRows{nullptr, type, 0, 0, columns};
  };
  EXPECT_FALSE(CanAttend(rows(GGML_TYPE_F16, 40)));
  EXPECT_FALSE(CanAttend(rows(GGML_TYPE_Q8_0, 48)));  // blocks of 32
  EXPECT_FALSE(CanAttend(rows(GGML_TYPE_F32, 0)));
  EXPECT_TRUE(CanAttend(rows(GGML_TYPE_Q8_0, 64)));
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
    const size_t bytes = c.row_size();
    std::copy_n(values.k_rows.begin() + static_cast<ptrdiff_t>(bytes) * position, bytes,
                c.k_rows.begin() + static_cast<ptrdiff_t>(bytes * cell));
    std::copy_n(values.v_rows.begin() + static_cast<ptrdiff_t>(bytes) * position, bytes,
                c.v_rows.begin() + static_cast<ptrdiff_t>(bytes * cell));
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
