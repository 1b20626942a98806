#include "engine/sampler/vocab_math.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

// Function multiversioning is resolved before the sanitizers' run time is up.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define PORTICO_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#else
#define PORTICO_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef PORTICO_VECTOR_CLONES
#define PORTICO_VECTOR_CLONES
#endif

namespace portico {
namespace {

constexpr size_t kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Ints = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

#define PORTICO_INLINE inline __attribute__((always_inline))

PORTICO_INLINE void Load(const float* from, Floats* to) { std::memcpy(to, from, sizeof(*to)); }
PORTICO_INLINE void Store(const Floats& from, float* to) { std::memcpy(to, &from, sizeof(from)); }

PORTICO_INLINE float SumOf(const Floats& v) {
  float sum = 0;
  for (size_t i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

// exp(x) for x <= 0, relative error below 3e-7 (a degree 7 polynomial on [-ln2/2, ln2/2]); 0 below
// -87.
PORTICO_INLINE void Exp(Floats* v) {
  const Floats x = *v;
  const Floats lowest = Floats{} - 87.0f;
  const Floats clamped = x > lowest ? x : lowest;
  const Ints n = __builtin_convertvector(clamped * 1.44269504f - 0.5f, Ints);
  const Floats nf = __builtin_convertvector(n, Floats);
  const Floats r = clamped - nf * 0.693359375f + nf * 2.12194440e-4f;
  Floats p = Floats{} + 1.9875691e-4f;
  p = p * r + 1.3981999e-3f;
  p = p * r + 8.3334519e-3f;
  p = p * r + 4.1665795e-2f;
  p = p * r + 1.6666665e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const Ints bits = (n + 127) << 23;
  Floats power;
  std::memcpy(&power, &bits, sizeof(power));
  const Floats result = p * power;
  *v = x > lowest ? result : Floats{};
}

// The tail of a row that does not fill a vector, filled up.
PORTICO_INLINE void LoadTail(const float* from, size_t count, float filler, Floats* to) {
  *to = Floats{} + filler;
  std::memcpy(to, from, count * sizeof(float));
}

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
  float best = kLowest;
  for (size_t i = 0; i < kLanes; ++i) best = std::max(best, max[i]);
  return best;
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

PORTICO_VECTOR_CLONES double ExpSum(std::span<const float> row, float max) {
  double total = 0;
  for (size_t begin = 0; begin < row.size(); begin += kSumBlock) {
    const size_t end = std::min(begin + kSumBlock, row.size());
    Floats sum = {};
    Floats v;
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      Load(&row[i], &v);
      v = v - max;
      Exp(&v);
      sum += v;
    }
    if (i < end) {
      LoadTail(&row[i], end - i, kLowest, &v);
      v = v - max;
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
