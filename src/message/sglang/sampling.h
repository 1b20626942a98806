// SamplingParams as they go to the scheduler: normalized, since it neither checks nor completes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "message/sampling.h"
#include "message/sglang/struct_plan.h"

namespace portico::sglang {

// Views: what they show outlives the encoding.
struct WireSampling {
  std::optional<int64_t> max_new_tokens;  // absent: as many as the context leaves
  int64_t min_new_tokens = 0;
  std::span<const TokenId> stop_token_ids;  // written once each
  double temperature = 1;                   // > 0; greedy is top_k 1
  double top_p = 1;
  int64_t top_k = 1 << 30;  // that is: all
  double min_p = 0;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  double repetition_penalty = 1;
  std::optional<int64_t> seed;
  std::span<const std::pair<TokenId, float>> logit_bias;
  // At most one is not null.
  const std::string* json_schema = nullptr;
  const std::string* regex = nullptr;
  const std::string* ebnf = nullptr;
  const std::string* structural_tag = nullptr;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  bool no_stop_trim = false;
  std::optional<int64_t> stream_interval;
  std::span<const std::string> stop_strs;
  std::span<const std::string> stop_regex_strs;
  std::string_view custom_params;  // encoded; empty: none
};

StatusOr<StructPlan<WireSampling>> SamplingPlan(const Schema& schema);

}  // namespace portico::sglang
