// What the GGUF of a folder will hold: every tensor under libllama's name with its shape, type and
// source. The names and shapes are those of libllama's "llama", "qwen2" and "qwen3" architectures
// (src/models in llama.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/hf_config.h"
#include "engine/llama/import/safetensors.h"
#include "ggml.h"

namespace portico::llama {

enum class ImportDtype { kAuto, kFloat32, kBfloat16 };

struct PlannedTensor {
  std::string name;
  int64_t columns = 0;  // contiguous
  int64_t rows = 0;     // 0: a vector
  ggml_type type = GGML_TYPE_F32;
  const WeightTensor* source = nullptr;  // or null, then:
  std::vector<float> values;
  // Rows of one attention head if they must be reordered, else 0. A checkpoint pairs dimension i
  // with i + d/2 for rotation; libllama's "llama" pairs 2i with 2i + 1. A vector's elements count
  // as rows.
  int64_t head_rows = 0;

  int64_t elements() const { return columns * (rows == 0 ? 1 : rows); }
};

struct ImportPlan {
  HfConfig config;
  std::string architecture;  // libllama's
  // The rope scaling is written as a divisor for each frequency (rope_freqs.weight), which only
  // libllama's "llama" takes; else libllama knows the scaling by name.
  bool rope_divisors = false;
  std::vector<PlannedTensor> tensors;
  std::vector<std::string> notes;  // sentences for the person who starts the server
};

// `weights` must outlive the plan. Errors: a tensor that is missing, of another shape than the
// config says, or of a type that cannot be imported.
StatusOr<ImportPlan> PlanImport(const HfConfig& config, const WeightFiles& weights,
                                ImportDtype dtype);

}  // namespace portico::llama
