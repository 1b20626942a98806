#include "engine/llama/attention/q8_products.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/llama/attention/sum_of_lanes.h"
#include "ggml-cpu.h"

namespace portico::llama {
namespace {

constexpr int kVectorsAtOnce = 8;    // for which a row is read once
constexpr int64_t kFewVectors = 8;   // without VNNI ggml multiplies more of them faster
constexpr int64_t kRowsAtOnce = 64;  // of the matrix that stay in the cache for all vectors
constexpr int64_t kManyGroups = 4;   // of vectors, for each thread
constexpr int64_t kValues = 32;      // of a block

// As ggml has it in memory.
struct Block {
  uint16_t scale;  // float16
  int8_t values[kValues];
};

// A block of each vector. For VNNI, which multiplies unsigned numbers with signed ones, 128 has been added to the values.
struct alignas(64) VectorBlocks {
  uint8_t values[kVectorsAtOnce][kValues];
  float scales[kVectorsAtOnce];
};

#define PORTICO_AVX2 __attribute__((target("avx2,fma,f16c")))
#define PORTICO_VNNI __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512vnni")))

bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
}

bool HasVnni() {
  static const bool has =
      HasAvx2() && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  return has;
}

PORTICO_AVX2 void Unpack(const Block* from, int64_t blocks, int64_t column, uint8_t offset,
                         VectorBlocks* to) {
  for (int64_t b = 0; b < blocks; ++b) {
    to[b].scales[column] = _cvtsh_ss(from[b].scale);
    for (int64_t i = 0; i < kValues; ++i) {
      to[b].values[column][i] = static_cast<uint8_t>(from[b].values[i] + offset);
    }
  }
}

// Products of kRows rows, which lie close, and the vectors: results[row][vector]. Two vectors share a register. The rows behind
// them are fetched meanwhile: of two streams beside each other the processor foresees neither.
template <int kPairs, int kRows>
PORTICO_VNNI void MultiplyVnni(const Block* rows, int64_t blocks, const VectorBlocks* vectors,
                               float (*results)[kVectorsAtOnce]) {
  __m512 sums[kRows][kPairs];
  __m512i scales_of[kPairs];
  const __m512i halves = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
#pragma GCC unroll 4
  for (int i = 0; i < kPairs; ++i) {
    scales_of[i] = _mm512_add_epi32(halves, _mm512_set1_epi32(2 * i));
#pragma GCC unroll 2
    for (int row = 0; row < kRows; ++row) sums[row][i] = _mm512_setzero_ps();
  }
  const __m512i zeros = _mm512_setzero_si512(), offset = _mm512_set1_epi8(-128);
  for (int64_t b = 0; b < blocks; ++b) {
    const VectorBlocks& v = vectors[b];
    const __m256 vector_scales = _mm256_load_ps(v.scales);
    __m512i values[kRows], excess[kRows];
    __m512 scales[kRows];
#pragma GCC unroll 2
    for (int row = 0; row < kRows; ++row) {
      const Block& block = rows[row * blocks + b];
      values[row] = _mm512_broadcast_i64x4(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.values)));
      excess[row] = _mm512_sub_epi32(zeros, _mm512_dpbusd_epi32(zeros, offset, values[row]));
      scales[row] = _mm512_zextps256_ps512(
          _mm256_mul_ps(_mm256_set1_ps(_cvtsh_ss(block.scale)), vector_scales));
    }
    __builtin_prefetch(rows + kRows * (blocks + b));
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const __m512i of_vectors = _mm512_load_si512(v.values[2 * i]);
#pragma GCC unroll 2
      for (int row = 0; row < kRows; ++row) {
        const __m512i fours = _mm512_dpbusd_epi32(excess[row], of_vectors, values[row]);
        sums[row][i] = _mm512_fmadd_ps(_mm512_permutexvar_ps(scales_of[i], scales[row]),
                                       _mm512_cvtepi32_ps(fours), sums[row][i]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kPairs; ++i) {
#pragma GCC unroll 2
    for (int row = 0; row < kRows; ++row) {
      alignas(64) float lanes[16];
      _mm512_store_ps(lanes, sums[row][i]);
      results[row][2 * i] = SumOfLanes(_mm256_load_ps(lanes));
      results[row][2 * i + 1] = SumOfLanes(_mm256_load_ps(lanes + 8));
    }
  }
}

// One row. Its signs go to the vectors, for the same reason.
template <int kCount>
PORTICO_AVX2 void MultiplyAvx2(const Block* row, int64_t blocks, const VectorBlocks* vectors,
                               float (*results)[kVectorsAtOnce]) {
  __m256 sums[kCount];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) sums[i] = _mm256_setzero_ps();
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t b = 0; b < blocks; ++b) {
    const VectorBlocks& v = vectors[b];
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row[b].values));
    const __m256i sizes = _mm256_sign_epi8(values, values);
    const float scale = _cvtsh_ss(row[b].scale);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const __m256i with_signs = _mm256_sign_epi8(
          _mm256_load_si256(reinterpret_cast<const __m256i*>(v.values[i])), values);
      const __m256i fours = _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, with_signs), ones);
      sums[i] =
          _mm256_fmadd_ps(_mm256_set1_ps(scale * v.scales[i]), _mm256_cvtepi32_ps(fours), sums[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) results[0][i] = SumOfLanes(sums[i]);
}

struct Kernel {
  using Function = void (*)(const Block*, int64_t, const VectorBlocks*, float (*)[kVectorsAtOnce]);
  Function multiply;
  int64_t rows;  // at once
};

// `rows`: as many there are at least.
Kernel KernelFor(size_t vectors, int64_t rows, bool vnni) {
  static constexpr Kernel::Function kOneRow[] = {MultiplyVnni<1, 1>, MultiplyVnni<2, 1>,
                                                 MultiplyVnni<3, 1>, MultiplyVnni<4, 1>};
  static constexpr Kernel::Function kTwoRows[] = {MultiplyVnni<1, 2>, MultiplyVnni<2, 2>,
                                                  MultiplyVnni<3, 2>, MultiplyVnni<4, 2>};
  static constexpr Kernel::Function kAvx2[] = {MultiplyAvx2<1>, MultiplyAvx2<2>, MultiplyAvx2<3>,
                                               MultiplyAvx2<4>, MultiplyAvx2<5>, MultiplyAvx2<6>,
                                               MultiplyAvx2<7>, MultiplyAvx2<8>};
  if (!vnni) return {kAvx2[vectors - 1], 1};
  const size_t pairs = (vectors + 1) / 2;
  return rows == 1 ? Kernel{kOneRow[pairs - 1], 1} : Kernel{kTwoRows[pairs - 1], 2};
}

char* RowOf(const ggml_tensor* t, int64_t row) {
  return static_cast<char*>(t->data) + static_cast<size_t>(row) * t->nb[1];
}

int64_t GroupsOf(int64_t vectors) { return (vectors + kVectorsAtOnce - 1) / kVectorsAtOnce; }

// What a thread multiplies: all vectors with some rows or, so that many vectors are not packed by each thread, some with all.
struct Part {
  Part(int64_t rows, int64_t vectors, int thread, int threads) {
    const int64_t groups = GroupsOf(vectors);
    if (groups >= kManyGroups * threads) {
      begin = 0;
      end = rows;
      first = groups * thread / threads * kVectorsAtOnce;
      count = std::min(groups * (thread + 1) / threads * kVectorsAtOnce, vectors) - first;
    } else {
      begin = rows * thread / threads;
      end = rows * (thread + 1) / threads;
      first = 0;
      count = vectors;
    }
  }

  int64_t begin, end;    // rows
  int64_t first, count;  // vectors
};

// In groups of vectors, block by block.
void PackVectors(const ggml_tensor* vectors, const Part& part, uint8_t offset,
                 std::vector<VectorBlocks>* packed) {
  thread_local std::vector<Block> vector;
  const ggml_from_float_t pack = ggml_get_type_traits_cpu(GGML_TYPE_Q8_0)->from_float;
  const int64_t blocks = vectors->ne[0] / kValues;
  vector.resize(static_cast<size_t>(blocks));
  packed->resize(static_cast<size_t>(blocks * GroupsOf(part.count)));
  for (int64_t i = 0; i < part.count; ++i) {
    const auto* from = reinterpret_cast<const float*>(RowOf(vectors, part.first + i));
    pack(from, vector.data(), vectors->ne[0]);
    Unpack(vector.data(), blocks, i % kVectorsAtOnce, offset,
           packed->data() + i / kVectorsAtOnce * blocks);
  }
}

void Compute(ggml_tensor* to, int thread, int threads, bool vnni) {
  thread_local std::vector<VectorBlocks> packed;
  const ggml_tensor *matrix = to->src[0], *vectors = to->src[1];
  const Part part(matrix->ne[1], vectors->ne[1], thread, threads);
  PackVectors(vectors, part, vnni ? 128 : 0, &packed);
  const int64_t blocks = matrix->ne[0] / kValues;
  const auto* rows = static_cast<const Block*>(matrix->data);
  for (int64_t chunk = part.begin; chunk < part.end; chunk += kRowsAtOnce) {
    const int64_t last = std::min(chunk + kRowsAtOnce, part.end);
    for (int64_t i = 0; i < part.count; i += kVectorsAtOnce) {
      const auto count = static_cast<size_t>(std::min<int64_t>(kVectorsAtOnce, part.count - i));
      const VectorBlocks* group = packed.data() + i / kVectorsAtOnce * blocks;
      float* out[kVectorsAtOnce];
      for (size_t v = 0; v < count; ++v) {
        out[v] = reinterpret_cast<float*>(RowOf(to, part.first + i + static_cast<int64_t>(v)));
      }
      for (int64_t row = chunk; row < last;) {
        const Kernel kernel = KernelFor(count, last - row, vnni);
        float results[2][kVectorsAtOnce];
        kernel.multiply(rows + row * blocks, blocks, group, results);
        for (int64_t r = 0; r < kernel.rows; ++r, ++row) {
          for (size_t v = 0; v < count; ++v) out[v][row] = results[r][v];
        }
      }
    }
  }
}

}  // namespace

bool HasQ8Products(const ggml_tensor* product) {
  static_assert(sizeof(Block) == 34);
  const ggml_tensor *matrix = product->src[0], *vectors = product->src[1];
  return matrix->type == GGML_TYPE_Q8_0 && HasAvx2() &&
         (HasVnni() || vectors->ne[1] <= kFewVectors) &&
         matrix->extra == nullptr &&  // not in an order of its own
         ggml_is_contiguous(matrix) && ggml_nrows(matrix) == matrix->ne[1] &&
         ggml_nrows(vectors) == vectors->ne[1] && vectors->type == GGML_TYPE_F32 &&
         vectors->nb[0] == sizeof(float) && product->type == GGML_TYPE_F32 &&
         product->nb[0] == sizeof(float);
}

void ComputeQ8Products(ggml_tensor* to, int thread, int threads, void*) {
  Compute(to, thread, threads, HasVnni());
}

void ComputeQ8ProductsAvx2(ggml_tensor* to, int thread, int threads, void*) {
  Compute(to, thread, threads, /*vnni=*/false);
}

}  // namespace portico::llama

#else

namespace portico::llama {

bool HasQ8Products(const ggml_tensor*) { return false; }
void ComputeQ8Products(ggml_tensor*, int, int, void*) {}
void ComputeQ8ProductsAvx2(ggml_tensor*, int, int, void*) {}

}  // namespace portico::llama

#endif
