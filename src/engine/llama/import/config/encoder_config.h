// config.json of BERT and its kin, with transformers' defaults for what it leaves out
// (transformers 5.23, models/{bert,roberta,xlm_roberta}/configuration_*.py).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/llama/import/config/architecture.h"
#include "engine/llama/import/config/config_fields.h"
#include "engine/llama/layers/exact_gelu.h"

namespace portico::llama {

struct EncoderConfig {
  Family family = Family::kBert;
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t intermediate_size = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t positions = 512;  // rows of the position table
  int64_t token_types = 2;  // rows of the token type table
  double layer_norm_eps = 1e-12;
  int64_t pad_token_id = 0;
  GeluForm gelu = GeluForm::kErf;

  // The row of the first token's position. RoBERTa counts from behind its padding's position.
  int64_t first_position() const { return family == Family::kBert ? 0 : pad_token_id + 1; }
  int64_t context_length() const { return positions - first_position(); }
};

// Errors (INVALID_ARGUMENT) name the field: impossible values, and features that cannot be imported.
StatusOr<EncoderConfig> ParseEncoderConfig(Family family, ConfigFields* fields);

}  // namespace portico::llama
