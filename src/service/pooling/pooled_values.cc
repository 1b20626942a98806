#include "service/pooling/pooled_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace portico {
namespace {

// As torch's normalize.
constexpr double kShortest = 1e-12;

}  // namespace

StatusOr<VectorForm> VectorForm::Of(const EngineInfo& engine, std::optional<int32_t> dimensions,
                                    std::optional<bool> normalize) {
  VectorForm form;
  form.size = dimensions.value_or(engine.embedding_size);
  form.normalize = normalize.value_or(engine.normalized);
  if (form.size == engine.embedding_size) return form;
  const std::vector<int32_t>& sizes = engine.embedding_sizes;
  if (sizes.empty()) {
    if (form.size >= 1 && form.size < engine.embedding_size) return form;
    return InvalidArgument("dimensions", fmt::format("dimensions must be in 1 to {}, got {}",
                                                     engine.embedding_size, form.size));
  }
  if (std::find(sizes.begin(), sizes.end(), form.size) != sizes.end()) return form;
  return InvalidArgument("dimensions",
                         fmt::format("dimensions must be one of {} or {}, got {}",
                                     fmt::join(sizes, ", "), engine.embedding_size, form.size));
}

void VectorForm::Apply(std::vector<float>* vector) const {
  if (vector->size() > static_cast<size_t>(size)) vector->resize(static_cast<size_t>(size));
  if (normalize) Normalize(*vector);
}

void Normalize(std::span<float> vector) {
  double sum = 0;
  for (float value : vector) sum += static_cast<double>(value) * value;
  const auto scale = static_cast<float>(1 / std::max(std::sqrt(sum), kShortest));
  for (float& value : vector) value *= scale;
}

void Softmax(std::span<float> logits) {
  if (logits.empty()) return;
  const float highest = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (float& value : logits) sum += value = std::exp(value - highest);
  for (float& value : logits) value /= sum;
}

void ToProbabilities(std::span<float> logits, ProblemType type) {
  if (type == ProblemType::kRegression) return;
  if (type == ProblemType::kSingleLabel && logits.size() > 1) return Softmax(logits);
  for (float& value : logits) value = 1 / (1 + std::exp(-value));
}

}  // namespace portico
