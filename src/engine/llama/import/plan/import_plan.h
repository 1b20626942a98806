// What the GGUF of a folder will hold: every tensor under libllama's name with its shape, type and
// source, and the metadata. The names, keys and shapes are those of libllama's "llama", "qwen2",
// "qwen3" and "bert" architectures (src/models in llama.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/config/encoder_config.h"
#include "engine/llama/import/config/hf_config.h"
#include "engine/llama/import/files/safetensors.h"
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

using PlannedValue = std::variant<uint32_t, float, bool, std::string>;

struct ImportPlan {
  Family family = Family::kLlama;
  std::string architecture;  // libllama's
  // Beside what every import says. Keys are whole ("llama.block_count").
  std::vector<std::pair<std::string, PlannedValue>> metadata;
  std::vector<PlannedTensor> tensors;
  std::vector<std::string> notes;  // sentences for the person who starts the server
};

// `weights` must outlive the plans. Errors: a tensor that is missing, of another shape than the
// config says, or of a type that cannot be imported. Heads are left out (pooling_weights.h).

// With config.top kLanguage the whole model; else its layers alone, for input that has been
// embedded already: one row of embeddings, and no output.
StatusOr<ImportPlan> PlanImport(const HfConfig& config, const WeightFiles& weights,
                                ImportDtype dtype);

StatusOr<ImportPlan> PlanImport(const EncoderConfig& config, const WeightFiles& weights,
                                ImportDtype dtype);

}  // namespace portico::llama
