#include "engine/llama/exact_gelu.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "engine/vector_math.h"

namespace portico::llama {
namespace {

// erf by Abramowitz and Stegun, 7.1.26.
PORTICO_INLINE void ErfGelu(Floats* v) {
  const Floats x = *v;
  const Floats z = (x < 0.0f ? -x : x) * 0.7071067812f;
  const Floats t = 1.0f / (1.0f + 0.3275911f * z);
  const Floats series =
      ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t +
       0.254829592f) *
      t;
  Floats power = -z * z;
  Exp(&power);
  const Floats tail = 0.5f * series * power;  // of the normal distribution beyond |x|
  *v = x * (x < 0.0f ? tail : 1.0f - tail);
}

// 0.5 * (1 + tanh(y / 2)) is the logistic function of y.
PORTICO_INLINE void TanhGelu(Floats* v) {
  const Floats x = *v;
  const Floats y = 1.5957691216f * x * (1.0f + 0.044715f * x * x);
  Floats small = y < 0.0f ? y : -y;
  Exp(&small);
  *v = x * (y < 0.0f ? small : Floats{} + 1.0f) / (1.0f + small);
}

template <void (*kFunction)(Floats*)>
PORTICO_INLINE void ForEach(float* values, size_t count) {
  const size_t whole = count / kLanes * kLanes;
  Floats v;
  for (size_t i = 0; i < whole; i += kLanes) {
    Load(values + i, &v);
    kFunction(&v);
    Store(v, values + i);
  }
  if (whole == count) return;
  LoadTail(values + whole, count - whole, 0.0f, &v);
  kFunction(&v);
  std::memcpy(values + whole, &v, (count - whole) * sizeof(float));
}

PORTICO_VECTOR_CLONES void ErfGelus(float* values, size_t count) {
  ForEach<ErfGelu>(values, count);
}

PORTICO_VECTOR_CLONES void TanhGelus(float* values, size_t count) {
  ForEach<TanhGelu>(values, count);
}

// One thread's part of a tensor's GELU.
void ComputeGelu(ggml_tensor* to, int thread, int threads, void* form) {
  const auto* from = static_cast<const float*>(to->src[0]->data);
  auto* values = static_cast<float*>(to->data);
  const int64_t count = ggml_nelements(to);
  const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
  if (values != from) std::copy(from + begin, from + end, values + begin);
  GeluInPlace(*static_cast<const GeluForm*>(form), values + begin,
              static_cast<size_t>(end - begin));
}

// Makes an operation that of ComputeGelu(). How ggml writes down an operation of others is its own affair, so that it is
// taken from one that ggml has made.
void BecomeCustom(ggml_tensor* tensor, void* form) {
  alignas(GGML_MEM_ALIGN) std::array<char, 4096> memory;
  ggml_context* context = ggml_init({memory.size(), memory.data(), /*no_alloc=*/true});
  ggml_tensor* from = tensor->src[0];
  const ggml_tensor* made = ggml_custom_4d(context, GGML_TYPE_F32, 1, 1, 1, 1, &from, 1,
                                           &ComputeGelu, GGML_N_TASKS_MAX, form);
  tensor->op = made->op;
  std::copy(std::begin(made->op_params), std::end(made->op_params), tensor->op_params);
  ggml_free(context);
}

}  // namespace

void GeluInPlace(GeluForm form, float* values, size_t count) {
  form == GeluForm::kErf ? ErfGelus(values, count) : TanhGelus(values, count);
}

bool ReplaceGelu(ggml_tensor* tensor, bool ask, void* form) {
  if (!ask || tensor->op != GGML_OP_UNARY || ggml_get_unary_op(tensor) != GGML_UNARY_OP_GELU) {
    return false;
  }
  const ggml_tensor* from = tensor->src[0];
  if (tensor->type != GGML_TYPE_F32 || from->type != GGML_TYPE_F32 || !ggml_is_contiguous(tensor) ||
      !ggml_is_contiguous(from)) {
    return false;
  }
  BecomeCustom(tensor, form);
  return false;
}

}  // namespace portico::llama
