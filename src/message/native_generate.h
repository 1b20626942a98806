// SGLang's native generate request, as HTTP and gRPC decode it: one prompt or a batch, with values
// that are given once or once a prompt. The service brings it into shape (service/plan/native_plan.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "message/text_request.h"

namespace portico {

// A value for all prompts, or a list with one for each.
template <typename T>
struct OneOrEach {
  std::vector<T> values;  // one, unless is_list
  bool is_list = false;

  bool given() const { return is_list || !values.empty(); }
  // The value for prompt i. Requires a list of that size, or no list.
  T Of(size_t i, const T& absent) const {
    if (is_list) return values[i];
    return values.empty() ? absent : values[0];
  }
};

// SGLang's default of max_new_tokens.
inline constexpr int32_t kNativeMaxNewTokens = 128;

// One map of sampling_params. The members of `options` for streaming, log-probabilities and names
// are not used: the request has them. Absent values are SGLang's own defaults, not the model's.
struct NativeSampling {
  NativeSampling() { options.max_tokens = kNativeMaxNewTokens; }

  GenerationOptions options;
  // max_new_tokens was left out: as much of the default as the context has room for.
  bool default_limit = true;
  int32_t stream_interval = 0;  // 0: the server's; tokens from one event of a stream to the next
};

struct NativeGenerateRequest {
  std::vector<CompletionRequest::Prompt> prompts;
  std::string prompt_field = "text";  // or "input_ids"; named in errors
  bool is_batch = false;              // the prompts came in a list

  OneOrEach<std::string> rid;
  OneOrEach<NativeSampling> sampling;
  OneOrEach<bool> return_logprob;
  OneOrEach<int32_t> logprob_start_len;  // -1: output tokens only
  OneOrEach<int32_t> top_logprobs_num;
  OneOrEach<std::vector<TokenId>> token_ids_logprob;       // ids >= 0; empty: none
  OneOrEach<std::shared_ptr<const RequestExtras>> extras;  // null: none
  int32_t priority = 0;
  bool return_text_in_logprobs = false;
  bool return_prompt_token_ids = false;
  std::optional<int32_t>
      max_thinking_tokens;  // reasoning, in which the answer begins, ends after them
  bool require_reasoning =
      false;  // the answer begins with reasoning, and its constraint behind that
  bool stream = false;
  std::string model;  // empty: the default model
};

}  // namespace portico
