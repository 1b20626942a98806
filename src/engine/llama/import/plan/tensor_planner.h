// The part of a plan that all families share: finds tensors, checks them and notes what is left
// over.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/llama/import/plan/import_plan.h"

namespace portico::llama {

// What stands before `name` ("embed_tokens.weight") in the names of the checkpoint: "", "model.",
// "bert.", …; the shortest if several end so, "" if none does.
std::string PrefixOf(const WeightFiles& weights, std::string_view name);

// The first error sticks and later calls do nothing.
class TensorPlanner {
 public:
  TensorPlanner(const WeightFiles& weights, ImportDtype dtype) : weights_(weights), dtype_(dtype) {}

  void AddMatrix(const std::string& from, const std::string& to, int64_t rows, int64_t columns,
                 int64_t head_rows = 0);
  // A matrix in float32 whatever the others are.
  void AddTable(const std::string& from, const std::string& to, int64_t rows, int64_t columns);
  void AddVector(const std::string& from, const std::string& to, int64_t size,
                 int64_t head_rows = 0);
  // FROM.weight and, with `bias`, FROM.bias.
  void AddLinear(const std::string& from, const std::string& to, int64_t rows, int64_t columns,
                 bool bias, int64_t head_rows = 0);
  // FROM.weight and FROM.bias; also under their names of old, FROM.gamma and FROM.beta.
  void AddLayerNorm(const std::string& from, const std::string& to, int64_t size);
  void AddValues(const std::string& to, std::vector<float> values, int64_t rows = 0);

  // Names that begin so are not left over.
  void Expect(const std::string& prefix) { expected_.push_back(prefix); }

  void Fail(Status failure) {
    if (failure_.ok()) failure_ = std::move(failure);
  }
  bool ok() const { return failure_.ok(); }

  // Moves tensors and notes to the plan.
  Status Finish(ImportPlan* plan);

 private:
  void Add(const std::string& from, const std::vector<int64_t>& shape, PlannedTensor tensor);
  ggml_type MatrixType(const std::string& dtype) const;
  bool Expected(const std::string& name) const;

  const WeightFiles& weights_;
  const ImportDtype dtype_;
  std::vector<PlannedTensor> tensors_;
  std::set<std::string> used_;
  std::vector<std::string> expected_;
  Status failure_;
};

}  // namespace portico::llama
