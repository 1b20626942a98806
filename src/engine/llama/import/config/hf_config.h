// config.json of a decoder that can be imported, with transformers' defaults for what it leaves out
// (transformers 5.23, models/{llama,mistral,qwen2,qwen3}/configuration_*.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/config/architecture.h"
#include "engine/llama/import/config/rope.h"

namespace portico::llama {

struct HfConfig {
  Family family = Family::kLlama;
  Top top = Top::kLanguage;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  bool tied = false;  // output weights are the embeddings
  bool qkv_bias = false;
  bool output_bias = false;  // of attention's o_proj
  bool mlp_bias = false;
  int64_t window = 0;  // sliding window of at least one layer; 0: none
  Rope rope;
  std::vector<float> rope_divisors;  // FrequencyDivisors() of it
};

// Errors (INVALID_ARGUMENT): not JSON, an architecture or feature that cannot be imported (the
// message lists what can), impossible values. `path` is for messages.
StatusOr<HfConfig> ParseHfConfig(const std::string& text, const std::string& path);
// The same of what is parsed already.
StatusOr<HfConfig> ParseHfConfig(const Architecture& architecture, ConfigFields* fields);

}  // namespace portico::llama
