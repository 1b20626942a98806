// Rotary position embedding as config.json describes it, in the old spelling (rope_theta,
// rope_scaling) and the new one (rope_parameters). The rules are those of transformers 5.23,
// modeling_rope_utils.py.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/config/config_fields.h"

namespace portico::llama {

struct Rope {
  enum class Scaling { kNone, kLinear, kYarn, kLlama3, kLongrope };

  double theta = 10000;
  Scaling scaling = Scaling::kNone;
  double factor = 1;
  double attention_factor = 1;                       // of cos and sin; kYarn and kLongrope
  int64_t original_context = 0;                      // kYarn, kLlama3, kLongrope
  double beta_fast = 32, beta_slow = 1;              // kYarn
  bool truncate = true;                              // kYarn: whole dimensions as bounds
  double low_freq_factor = 1, high_freq_factor = 4;  // kLlama3
  std::vector<double> short_factor;                  // kLongrope
  // Longest sequence for which this is the publisher's rotation; 0: no such bound. kLongrope
  // changes its factors beyond the original context ("dynamic" scaling begins at
  // max_position_embeddings, where every context ends).
  int64_t max_context = 0;
};

StatusOr<Rope> ParseRope(const ConfigFields& config, int64_t max_position_embeddings);

// By what each pair of dimensions' frequency theta^(-2i/head_dim) is divided: head_dim / 2 values.
// For every scaling but kLongrope with a list of another length, which is an error.
StatusOr<std::vector<float>> FrequencyDivisors(const Rope& rope, int64_t head_dim,
                                               const ConfigFields& config);

// What YaRN multiplies cos and sin by unless told otherwise.
double YarnAttentionFactor(double factor);

}  // namespace portico::llama
