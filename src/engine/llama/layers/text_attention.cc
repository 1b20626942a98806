#include "engine/llama/layers/text_attention.h"

#include <algorithm>

#include "engine/vector_math.h"

namespace portico::llama {
namespace {

// Queries that are computed together, so that a vector of keys or values is loaded once for all of them.
constexpr size_t kQueries = 4;
// Vectors of keys, or of a value's columns, that are computed together.
constexpr size_t kVectors = 2;
constexpr size_t kWide = kVectors * kLanes;

size_t Padded(size_t size) { return (size + kWide - 1) / kWide * kWide; }

// out[q][0 .. kWide) = sum over i < count of left[q][i] * right[i][0 .. kWide).
PORTICO_INLINE void Multiply(const float* const* left, size_t count, const float* right,
                             size_t right_stride, float* const* out) {
  Floats sums[kQueries][kVectors] = {};
  for (size_t i = 0; i < count; ++i) {
    Floats row[kVectors];
    for (size_t v = 0; v < kVectors; ++v) Load(right + i * right_stride + v * kLanes, &row[v]);
    for (size_t q = 0; q < kQueries; ++q) {
      for (size_t v = 0; v < kVectors; ++v) sums[q][v] += left[q][i] * row[v];
    }
  }
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t v = 0; v < kVectors; ++v) Store(sums[q][v], out[q] + v * kLanes);
  }
}

// Makes `count` scores their softmax; what follows them, up to `padded`, becomes 0.
PORTICO_INLINE void Softmax(float* scores, size_t count, size_t padded, float scale) {
  constexpr float kLowest = -1e30f;
  std::fill(scores + count, scores + padded, kLowest);
  Floats most = Floats{} + kLowest;
  Floats v;
  for (size_t i = 0; i < padded; i += kLanes) {
    Load(scores + i, &v);
    most = v > most ? v : most;
  }
  const float max = GreatestOf(most);
  Floats sums = {};
  for (size_t i = 0; i < padded; i += kLanes) {
    Load(scores + i, &v);
    v = (v - max) * scale;
    Exp(&v);
    Store(v, scores + i);
    sums += v;
  }
  const float share = 1.0f / SumOf(sums);
  for (size_t i = 0; i < padded; i += kLanes) {
    Load(scores + i, &v);
    v *= share;
    Store(v, scores + i);
  }
}

PORTICO_VECTOR_CLONES void AttendPadded(const float* queries, size_t query_stride,
                                        const AttentionScratch& scratch, size_t count, size_t size,
                                        float scale, float* weights, float* out,
                                        size_t out_stride) {
  const size_t keys = Padded(count), columns = Padded(size);
  float* spare = weights + kQueries * keys;  // kQueries rows of `columns`
  for (size_t first = 0; first < count; first += kQueries) {
    const float* query[kQueries];
    const float* weight[kQueries];
    float* to[kQueries];
    // Beyond the last query it is computed again.
    for (size_t q = 0; q < kQueries; ++q) {
      query[q] = queries + std::min(first + q, count - 1) * query_stride;
      weight[q] = weights + q * keys;
    }
    for (size_t at = 0; at < keys; at += kWide) {
      for (size_t q = 0; q < kQueries; ++q) to[q] = weights + q * keys + at;
      Multiply(query, size, scratch.keys.data() + at, keys, to);
    }
    for (size_t q = 0; q < kQueries; ++q) Softmax(weights + q * keys, count, keys, scale);
    for (size_t at = 0; at < columns; at += kWide) {
      for (size_t q = 0; q < kQueries; ++q) to[q] = spare + q * columns + at;
      Multiply(weight, count, scratch.values.data() + at, columns, to);
    }
    for (size_t q = 0; q < std::min(kQueries, count - first); ++q) {
      std::copy_n(spare + q * columns, size, out + (first + q) * out_stride);
    }
  }
}

}  // namespace

void Attend(const float* queries, size_t query_stride, const float* keys, const float* values,
            size_t count, size_t size, float scale, float* out, size_t out_stride,
            AttentionScratch* scratch) {
  const size_t padded = Padded(count), columns = Padded(size);
  scratch->keys.assign(size * padded, 0.0f);  // a column a key
  scratch->values.assign(count * columns, 0.0f);
  scratch->weights.resize(kQueries * (padded + columns));
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < size; ++j) scratch->keys[j * padded + i] = keys[i * size + j];
    std::copy_n(values + i * size, size, scratch->values.data() + i * columns);
  }
  AttendPadded(queries, query_stride, *scratch, count, size, scale, scratch->weights.data(), out,
               out_stride);
}

}  // namespace portico::llama
