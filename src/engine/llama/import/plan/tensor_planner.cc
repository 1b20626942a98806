#include "engine/llama/import/plan/tensor_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/llama/import/files/file.h"

namespace portico::llama {

std::string PrefixOf(const WeightFiles& weights, std::string_view name) {
  std::optional<std::string> shortest;
  for (const auto& [full, tensor] : weights.tensors()) {
    if (!full.ends_with(name)) continue;
    std::string prefix = full.substr(0, full.size() - name.size());
    if (!prefix.empty() && !prefix.ends_with('.')) continue;
    if (!shortest || prefix.size() < shortest->size()) shortest = std::move(prefix);
  }
  return shortest.value_or("");
}

void TensorPlanner::AddMatrix(const std::string& from, const std::string& to, int64_t rows,
                              int64_t columns, int64_t head_rows) {
  PlannedTensor tensor{to, columns, rows, GGML_TYPE_F32, nullptr, {}, head_rows};
  Add(from, {rows, columns}, std::move(tensor));
}

void TensorPlanner::AddTable(const std::string& from, const std::string& to, int64_t rows,
                             int64_t columns) {
  AddMatrix(from, to, rows, columns);
  if (failure_.ok()) tensors_.back().type = GGML_TYPE_F32;
}

void TensorPlanner::AddVector(const std::string& from, const std::string& to, int64_t size,
                              int64_t head_rows) {
  Add(from, {size}, PlannedTensor{to, size, 0, GGML_TYPE_F32, nullptr, {}, head_rows});
}

void TensorPlanner::AddLinear(const std::string& from, const std::string& to, int64_t rows,
                              int64_t columns, bool bias, int64_t head_rows) {
  AddMatrix(from + ".weight", to + ".weight", rows, columns, head_rows);
  if (bias) AddVector(from + ".bias", to + ".bias", rows, head_rows);
}

void TensorPlanner::AddLayerNorm(const std::string& from, const std::string& to, int64_t size) {
  const bool old =
      weights_.Find(from + ".weight") == nullptr && weights_.Find(from + ".gamma") != nullptr;
  AddVector(from + (old ? ".gamma" : ".weight"), to + ".weight", size);
  AddVector(from + (old ? ".beta" : ".bias"), to + ".bias", size);
}

void TensorPlanner::AddValues(const std::string& to, std::vector<float> values, int64_t rows) {
  PlannedTensor tensor;
  tensor.name = to;
  tensor.rows = rows;
  tensor.columns = static_cast<int64_t>(values.size()) / std::max<int64_t>(rows, 1);
  tensor.values = std::move(values);
  tensors_.push_back(std::move(tensor));
}

void TensorPlanner::Add(const std::string& from, const std::vector<int64_t>& shape,
                        PlannedTensor tensor) {
  if (!failure_.ok()) return;
  used_.insert(from);
  tensor.source = weights_.Find(from);
  if (tensor.source == nullptr) {
    return Fail(
        BadFile(weights_.files().front().path(), fmt::format("the tensor {} is missing", from)));
  }
  const std::string& path = weights_.FileOf(*tensor.source).path();
  if (tensor.source->shape != shape) {
    WeightTensor wanted;
    wanted.shape = shape;
    return Fail(BadFile(path, fmt::format("tensor {} has the shape {}, but config.json makes it {}",
                                          from, tensor.source->ShapeText(), wanted.ShapeText())));
  }
  const std::string& dtype = tensor.source->dtype;
  if (dtype != "F32" && dtype != "F16" && dtype != "BF16") {
    return Fail(BadFile(
        path, fmt::format("tensor {} is {}; F32, F16 and BF16 can be imported", from, dtype)));
  }
  if (tensor.rows != 0) tensor.type = MatrixType(dtype);
  tensors_.push_back(std::move(tensor));
}

ggml_type TensorPlanner::MatrixType(const std::string& dtype) const {
  if (dtype_ == ImportDtype::kFloat32) return GGML_TYPE_F32;
  if (dtype_ == ImportDtype::kBfloat16) return GGML_TYPE_BF16;
  return dtype == "F32" ? GGML_TYPE_F32 : dtype == "F16" ? GGML_TYPE_F16 : GGML_TYPE_BF16;
}

bool TensorPlanner::Expected(const std::string& name) const {
  return used_.count(name) > 0 ||
         std::any_of(expected_.begin(), expected_.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

Status TensorPlanner::Finish(ImportPlan* plan) {
  PORTICO_RETURN_IF_ERROR(failure_);
  plan->tensors = std::move(tensors_);
  // transformers leaves such tensors out too, with a warning.
  std::vector<std::string> unused;
  for (const auto& [name, tensor] : weights_.tensors()) {
    if (!Expected(name) && !name.ends_with(".rotary_emb.inv_freq")) unused.push_back(name);
  }
  if (unused.empty()) return OkStatus();
  plan->notes.push_back(
      fmt::format("{} tensors of the folder are not part of a {} model as config.json describes it "
                  "and are left out, the first is {}.",
                  unused.size(), FamilyName(plan->family), unused.front()));
  return OkStatus();
}

}  // namespace portico::llama
