// Vectors of floats in the compiler's own terms, and functions of them. A function that uses them is marked
// PORTICO_VECTOR_CLONES: it is compiled for each width that processors have, and the widest is chosen at start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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

PORTICO_INLINE float GreatestOf(const Floats& v) {
  float greatest = v[0];
  for (size_t i = 1; i < kLanes; ++i) greatest = greatest < v[i] ? v[i] : greatest;
  return greatest;
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

}  // namespace portico
