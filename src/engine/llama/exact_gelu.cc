#include "engine/llama/exact_gelu.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace portico::llama {
namespace {

// e^-x for x >= 0, without a call, so that loops over it become vector code: 2^whole * 2^part, the latter as the first
// terms of its series around 0.
inline float ExpMinus(float x) {
  const float power = std::max(-x * 1.442695041f, -126.0f);
  const auto whole = static_cast<int32_t>(power - 0.5f);
  const float part = (power - static_cast<float>(whole)) * 0.6931471806f;
  float sum = 1.0f / 5040;
  for (const float term : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
    sum = sum * part + term;
  }
  return sum * std::bit_cast<float>((whole + 127) << 23);
}

// erf by Abramowitz and Stegun, 7.1.26.
inline float ErfGelu(float x) {
  const float z = std::abs(x) * 0.7071067812f;
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  const float series =
      ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t +
       0.254829592f) *
      t;
  const float tail = 0.5f * series * ExpMinus(z * z);  // of the normal distribution beyond |x|
  return x * (x < 0 ? tail : 1.0f - tail);
}

// 0.5 * (1 + tanh(y / 2)) is the logistic function of y.
inline float TanhGelu(float x) {
  const float y = 1.5957691216f * x * (1.0f + 0.044715f * x * x);
  const float small = ExpMinus(std::abs(y));
  return x * (y < 0 ? small : 1.0f) / (1.0f + small);
}

// "ffn_gelu-3": a layer's tensor, by the name that libllama gives it.
bool IsLayers(const ggml_tensor* tensor, std::string_view name) {
  const std::string_view full(tensor->name);
  return full.size() > name.size() && full.starts_with(name) && full[name.size()] == '-';
}

}  // namespace

void GeluInPlace(GeluForm form, float* values, size_t count) {
  if (form == GeluForm::kErf) {
    for (size_t i = 0; i < count; ++i) values[i] = ErfGelu(values[i]);
  } else {
    for (size_t i = 0; i < count; ++i) values[i] = TanhGelu(values[i]);
  }
}

bool ExactGelu::OnTensor(ggml_tensor* tensor, bool ask, void* self) {
  const bool before = IsLayers(tensor, "ffn_up_b"), after = IsLayers(tensor, "ffn_gelu");
  if (ask) return before || after;
  if (tensor->type != GGML_TYPE_F32 || !ggml_is_contiguous(tensor)) return true;
  auto& gelu = *static_cast<ExactGelu*>(self);
  std::vector<float>& kept = gelu.kept_;
  auto* values = static_cast<float*>(tensor->data);
  const auto count = static_cast<size_t>(ggml_nelements(tensor));
  if (before) {
    kept.assign(values, values + count);
    GeluInPlace(gelu.form_, kept.data(), count);
  } else if (after && kept.size() == count) {
    std::memcpy(values, kept.data(), count * sizeof(float));
    kept.clear();
  }
  return true;
}

}  // namespace portico::llama
