#include "engine/llama/layers/exact_gelu.h"

#include <cstring>

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

}  // namespace

void GeluInPlace(GeluForm form, float* values, size_t count) {
  form == GeluForm::kErf ? ErfGelus(values, count) : TanhGelus(values, count);
}

}  // namespace portico::llama
