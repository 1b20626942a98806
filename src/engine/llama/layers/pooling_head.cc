#include "engine/llama/layers/pooling_head.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace portico::llama {
namespace {

float Activate(Activation activation, float value) {
  switch (activation) {
    case Activation::kNone:
      return value;
    case Activation::kTanh:
      return std::tanh(value);
    case Activation::kRelu:
      return std::max(value, 0.0f);
  }
  return value;
}

// In eight parts, so that the compiler can use vectors without reordering what the code says.
float Dot(const float* a, const float* b, size_t size) {
  constexpr size_t kParts = 8;
  float sums[kParts] = {};
  size_t i = 0;
  for (; i + kParts <= size; i += kParts) {
    for (size_t part = 0; part < kParts; ++part) sums[part] += a[i + part] * b[i + part];
  }
  float sum = 0;
  for (; i < size; ++i) sum += a[i] * b[i];
  for (const float part : sums) sum += part;
  return sum;
}

std::vector<float> Run(const DenseLayer& layer, const std::vector<float>& in) {
  std::vector<float> out(layer.rows);
  for (size_t row = 0; row < layer.rows; ++row) {
    const float bias = layer.bias.empty() ? 0 : layer.bias[row];
    out[row] = Activate(layer.activation,
                        bias + Dot(&layer.weight[row * layer.columns], in.data(), layer.columns));
  }
  return out;
}

}  // namespace

bool PoolingHead::Add(DenseLayer layer) {
  if (!layers_.empty() && layers_.back().rows != layer.columns) return false;
  layers_.push_back(std::move(layer));
  return true;
}

std::vector<float> PoolingHead::Apply(std::vector<float> vector) const {
  for (const DenseLayer& layer : layers_) vector = Run(layer, vector);
  return vector;
}

}  // namespace portico::llama
