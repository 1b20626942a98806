#include "engine/llama/attention/float_products.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/llama/attention/sum_of_lanes.h"
#include "ggml-cpu.h"

namespace portico::llama {
namespace {

constexpr int64_t kMostVectors = 8;    // of more, ggml's are faster
constexpr int64_t kBytesAhead = 4096;  // of the matrix, fetched: the processor alone foresees less
constexpr int64_t kRowsOfTile = 4;  // rows; other numbers of them ggml multiplies in another order

#define PORTICO_AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bf16")))

// How `kLanes` values of a row and of a vector are added to sixteen sums, as ggml does it.
struct Bfloat16 {
  static constexpr int64_t kLanes = 32, kBytes = 2;
  PORTICO_AVX512 static __m512 Add(const char* row, const char* vector, __m512 sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_loadu_si512(row),
                            (__m512bh)_mm512_loadu_si512(vector));
  }
};

struct Float16 {
  static constexpr int64_t kLanes = 16, kBytes = 2;
  PORTICO_AVX512 static __m512 Add(const char* row, const char* vector, __m512 sum) {
    return _mm512_fmadd_ps(
        _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row))),
        _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(vector))), sum);
  }
};

struct Float32 {
  static constexpr int64_t kLanes = 16, kBytes = 4;
  PORTICO_AVX512 static __m512 Add(const char* row, const char* vector, __m512 sum) {
    return _mm512_fmadd_ps(_mm512_loadu_ps(row), _mm512_loadu_ps(vector), sum);
  }
};

// Products of a row and kVectors vectors, which lie close in bytes_a_row each.
template <typename Type, int kVectors>
PORTICO_AVX512 void Multiply(const char* row, const char* vectors, int64_t bytes_a_row,
                             float* results) {
  __m512 sums[kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) sums[i] = _mm512_setzero_ps();
  constexpr int64_t kStride = Type::kLanes * Type::kBytes;
  for (int64_t at = 0; at < bytes_a_row; at += kStride) {
    __builtin_prefetch(row + at + kBytesAhead);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      sums[i] = Type::Add(row + at, vectors + i * bytes_a_row + at, sums[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) results[i] = SumOfLanes(sums[i]);
}

using Function = void (*)(const char*, const char*, int64_t, float*);
using Functions = std::array<Function, kMostVectors>;  // for so many vectors and one

template <typename Type, size_t... kVectors>
constexpr Functions ForVectors(std::index_sequence<kVectors...>) {
  return {Multiply<Type, kVectors + 1>...};
}

const Functions& FunctionsFor(ggml_type type) {
  static constexpr auto kCounts = std::make_index_sequence<kMostVectors>();
  static constexpr Functions kBfloat16 = ForVectors<Bfloat16>(kCounts),
                             kFloat16 = ForVectors<Float16>(kCounts),
                             kFloat32 = ForVectors<Float32>(kCounts);
  return type == GGML_TYPE_BF16 ? kBfloat16 : type == GGML_TYPE_F16 ? kFloat16 : kFloat32;
}

bool HasInstructions() {
  static const bool has = __builtin_cpu_supports("avx512bf16") && ggml_cpu_has_avx512_bf16() != 0 &&
                          ggml_cpu_has_llamafile() != 0;
  return has;
}

// What the matrix's type is multiplied with, row by row.
const char* PackVectors(const ggml_tensor* vectors, ggml_type type, size_t bytes_a_row) {
  if (type == GGML_TYPE_F32) return static_cast<const char*>(vectors->data);
  thread_local std::vector<char> packed;
  packed.resize(static_cast<size_t>(vectors->ne[1]) * bytes_a_row);
  const ggml_from_float_t pack = ggml_get_type_traits_cpu(type)->from_float;
  for (int64_t i = 0; i < vectors->ne[1]; ++i) {
    const char* from = static_cast<char*>(vectors->data) + static_cast<size_t>(i) * vectors->nb[1];
    pack(reinterpret_cast<const float*>(from), packed.data() + static_cast<size_t>(i) * bytes_a_row,
         vectors->ne[0]);
  }
  return packed.data();
}

}  // namespace

bool HasFloatProducts(const ggml_tensor* product) {
  const ggml_tensor *matrix = product->src[0], *vectors = product->src[1];
  const bool is_float = matrix->type == GGML_TYPE_BF16 || matrix->type == GGML_TYPE_F16 ||
                        matrix->type == GGML_TYPE_F32;
  // ggml has a transform of its own for rotations of keys and values that are kept quantized.
  const bool is_rotation = product->op_params[1] == GGML_HINT_SRC0_IS_HADAMARD;
  return is_float && !is_rotation && HasInstructions() && vectors->ne[1] <= kMostVectors &&
         matrix->ne[1] % kRowsOfTile == 0 && matrix->ne[0] % Bfloat16::kLanes == 0 &&
         matrix->extra == nullptr &&  // not in an order of its own
         ggml_is_contiguous(matrix) && ggml_nrows(matrix) == matrix->ne[1] &&
         ggml_is_contiguous(vectors) && ggml_nrows(vectors) == vectors->ne[1] &&
         vectors->type == GGML_TYPE_F32 && product->type == GGML_TYPE_F32 &&
         product->nb[0] == sizeof(float);
}

void ComputeFloatProducts(ggml_tensor* to, int thread, int threads, void*) {
  const ggml_tensor *matrix = to->src[0], *vectors = to->src[1];
  const size_t bytes_a_row = ggml_row_size(matrix->type, matrix->ne[0]);
  const char* packed = PackVectors(vectors, matrix->type, bytes_a_row);
  const auto count = static_cast<size_t>(vectors->ne[1]);
  const Function multiply = FunctionsFor(matrix->type)[count - 1];
  const int64_t rows = matrix->ne[1];
  float results[kMostVectors];
  for (int64_t row = rows * thread / threads; row < rows * (thread + 1) / threads; ++row) {
    multiply(static_cast<const char*>(matrix->data) + static_cast<size_t>(row) * bytes_a_row,
             packed, static_cast<int64_t>(bytes_a_row), results);
    for (size_t i = 0; i < count; ++i) {
      auto* out = reinterpret_cast<float*>(static_cast<char*>(to->data) + i * to->nb[1]);
      out[row] = results[i];
    }
  }
}

}  // namespace portico::llama

#else

namespace portico::llama {

bool HasFloatProducts(const ggml_tensor*) { return false; }
void ComputeFloatProducts(ggml_tensor*, int, int, void*) {}

}  // namespace portico::llama

#endif
