#include "engine/llama/attention/row_products.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ggml-cpu.h"

namespace portico::llama {
namespace {

constexpr int64_t kRows = 16;  // of the matrix that stay in the processor's cache for all vectors

}  // namespace

bool HasRowProducts(const ggml_tensor* product) {
  const ggml_tensor *matrix = product->src[0], *vectors = product->src[1];
  const ggml_type_traits_cpu* traits = ggml_get_type_traits_cpu(matrix->type);
  if (traits->vec_dot == nullptr) return false;
  const ggml_type reads = traits->vec_dot_type;
  return matrix->extra == nullptr &&  // not in an order of its own
         (reads == GGML_TYPE_F32 || ggml_get_type_traits_cpu(reads)->from_float != nullptr) &&
         matrix->nb[0] == ggml_type_size(matrix->type) && vectors->type == GGML_TYPE_F32 &&
         vectors->nb[0] == sizeof(float) && product->type == GGML_TYPE_F32 &&
         product->nb[0] == sizeof(float);
}

bool IsBatchInvariant(const ggml_tensor* product, bool several) {
#if defined(__x86_64__)
  if (product->src[0]->extra != nullptr) return false;
  switch (product->src[0]->type) {
    case GGML_TYPE_F32:
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16:
    case GGML_TYPE_IQ4_NL:
      return several;
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_MXFP4:
      return true;
    default:
      return false;
  }
#else
  (void)product;
  (void)several;
  return false;
#endif
}

void ComputeRowProducts(ggml_tensor* to, int thread, int threads, void*) {
  thread_local std::vector<char> packed;
  const ggml_tensor *matrix = to->src[0], *vectors = to->src[1];
  const ggml_type_traits_cpu* traits = ggml_get_type_traits_cpu(matrix->type);
  const int64_t columns = matrix->ne[0], rows = matrix->ne[1], count = vectors->ne[1];
  const size_t packed_row = ggml_row_size(traits->vec_dot_type, columns);
  const ggml_from_float_t pack = ggml_get_type_traits_cpu(traits->vec_dot_type)->from_float;
  const int64_t begin = rows * thread / threads, end = rows * (thread + 1) / threads;
  packed.resize(packed_row * static_cast<size_t>(count));
  const auto at = [](const ggml_tensor* t, int64_t i1, int64_t i2, int64_t i3) {
    return static_cast<char*>(t->data) + static_cast<size_t>(i1) * t->nb[1] +
           static_cast<size_t>(i2) * t->nb[2] + static_cast<size_t>(i3) * t->nb[3];
  };
  for (int64_t i3 = 0; i3 < vectors->ne[3]; ++i3) {
    for (int64_t i2 = 0; i2 < vectors->ne[2]; ++i2) {
      const int64_t m2 = i2 / (vectors->ne[2] / matrix->ne[2]);
      const int64_t m3 = i3 / (vectors->ne[3] / matrix->ne[3]);
      for (int64_t i = 0; i < count; ++i) {
        const auto* from = reinterpret_cast<const float*>(at(vectors, i, i2, i3));
        char* row = packed.data() + static_cast<size_t>(i) * packed_row;
        if (traits->vec_dot_type == GGML_TYPE_F32) {
          std::copy_n(from, columns, reinterpret_cast<float*>(row));
        } else {
          pack(from, row, columns);
        }
      }
      for (int64_t first = begin; first < end; first += kRows) {
        for (int64_t i = 0; i < count; ++i) {
          auto* out = reinterpret_cast<float*>(at(to, i, i2, i3));
          const char* vector = packed.data() + static_cast<size_t>(i) * packed_row;
          for (int64_t row = first; row < std::min(first + kRows, end); ++row) {
            traits->vec_dot(static_cast<int>(columns), out + row, 0, at(matrix, row, m2, m3), 0,
                            vector, 0, 1);
          }
        }
      }
    }
  }
}

}  // namespace portico::llama
