// Sums of a register's floats, in the order in which ggml adds them.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

namespace portico::llama {

__attribute__((target("avx2"))) inline float SumOfLanes(__m256 v) {
  __m128 sum = _mm_add_ps(_mm256_extractf128_ps(v, 1), _mm256_castps256_ps128(v));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

// Through memory: GCC 12 warns of what its own intrinsics for halves of a register leave undefined.
__attribute__((target("avx2,avx512f"))) inline float SumOfLanes(__m512 v) {
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, v);
  return SumOfLanes(_mm256_add_ps(_mm256_load_ps(lanes + 8), _mm256_load_ps(lanes)));
}

}  // namespace portico::llama

#endif
