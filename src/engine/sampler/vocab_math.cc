#include "engine/sampler/vocab_math.h"

#include <algorithm>
#include <limits>

#include "engine/vector_math.h"

namespace portico {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

}  // namespace

PORTICO_VECTOR_CLONES float MaxOf(std::span<const float> row) {
  const size_t whole = row.size() / kLanes * kLanes;
  Floats max = Floats{} + kLowest;
  Floats v;
  for (size_t i = 0; i < whole; i += kLanes) {
    Load(&row[i], &v);
    max = v > max ? v : max;
  }
  if (whole < row.size()) {
    LoadTail(&row[whole], row.size() - whole, kLowest, &v);
    max = v > max ? v : max;
  }
  return GreatestOf(max);
}

PORTICO_VECTOR_CLONES TokenId ArgMax(std::span<const float> row, float max) {
  const Floats wanted = Floats{} + max;
  const size_t whole = row.size() / kLanes * kLanes;
  size_t i = 0;
  for (Floats v; i < whole; i += kLanes) {
    Load(&row[i], &v);
    const Ints equal = v == wanted;
    int32_t any = 0;
    for (size_t j = 0; j < kLanes; ++j) any |= equal[j];
    if (any != 0) break;
  }
  while (i < row.size() && row[i] != max) ++i;
  return static_cast<TokenId>(i < row.size() ? i : 0);
}

PORTICO_VECTOR_CLONES double ExpOf(std::span<const float> row, float max, float scale,
                                   std::span<float> out, std::span<float> block_sums) {
  double total = 0;
  for (size_t begin = 0; begin < row.size(); begin += kSumBlock) {
    const size_t end = std::min(begin + kSumBlock, row.size());
    Floats sum = {};
    Floats v;
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      Load(&row[i], &v);
      v = (v - max) * scale;
      Exp(&v);
      Store(v, &out[i]);
      sum += v;
    }
    if (i < end) {
      LoadTail(&row[i], end - i, kLowest, &v);
      v = (v - max) * scale;
      Exp(&v);
      std::memcpy(&out[i], &v, (end - i) * sizeof(float));
      sum += v;
    }
    block_sums[begin / kSumBlock] = SumOf(sum);
    total += block_sums[begin / kSumBlock];
  }
  return total;
}

PORTICO_VECTOR_CLONES double ExpSum(std::span<const float> row, float max, float scale) {
  double total = 0;
  for (size_t begin = 0; begin < row.size(); begin += kSumBlock) {
    const size_t end = std::min(begin + kSumBlock, row.size());
    Floats sum = {};
    Floats v;
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      Load(&row[i], &v);
      v = (v - max) * scale;
      Exp(&v);
      sum += v;
    }
    if (i < end) {
      LoadTail(&row[i], end - i, kLowest, &v);
      v = (v - max) * scale;
      Exp(&v);
      sum += v;
    }
    total += SumOf(sum);
  }
  return total;
}

PORTICO_VECTOR_CLONES void IndicesAtLeast(std::span<const float> values, float cutoff,
                                          std::vector<TokenId>* indices) {
  const Floats limit = Floats{} + cutoff;
  const size_t whole = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    Floats v;
    Load(&values[i], &v);
    const Ints reached = v >= limit;
    int32_t any = 0;
    for (size_t j = 0; j < kLanes; ++j) any |= reached[j];
    if (any == 0) continue;
    for (size_t j = 0; j < kLanes; ++j) {
      if (reached[j] != 0) indices->push_back(static_cast<TokenId>(i + j));
    }
  }
  for (size_t i = whole; i < values.size(); ++i) {
    if (values[i] >= cutoff) indices->push_back(static_cast<TokenId>(i));
  }
}

}  // namespace portico
