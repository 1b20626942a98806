// Validated, API-neutral requests for text: what the api room decodes from a body and the service room answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/constraint.h"
#include "message/request_extras.h"
#include "message/sampling.h"
#include "text/json.h"

namespace portico {

// What chat and completion requests share. An absent optional means "the model's default", which the service
// fills in (generation_config.json, then OpenAI's defaults). Ranges are already checked.
struct GenerationOptions {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> repetition_penalty;
  std::optional<int64_t> seed;
  std::vector<std::pair<TokenId, float>> logit_bias;  // ids >= 0; the service checks the vocabulary

  std::optional<int64_t> max_tokens;                 // absent: what the context leaves
  std::string_view max_tokens_field = "max_tokens";  // as the request's API or client calls it
  int32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  bool no_stop_trim = false;  // keep the stop string or token in the text
  bool skip_special_tokens = true;

  std::optional<int32_t> max_thinking_tokens;    // >= 0; reasoning ends after them
  std::shared_ptr<const Constraint> constraint;  // what the answer must look like; null: anything

  int32_t n = 1;
  int32_t best_of = 1;  // >= n; the n best by mean log-probability are answered

  bool logprobs = false;
  int32_t top_logprobs = 0;

  bool stream = false;
  bool include_usage = false;
  bool continuous_usage_stats = false;

  bool return_token_ids = false;
  // As the request's API or client calls them:
  std::string_view reasoning_field = "reasoning_content";
  bool legacy_functions = false;  // a call is a `function_call`
  std::string rid;                // the client's name for the request, or empty
  std::string model;              // as asked for; empty: the default model
  std::string user;

  std::shared_ptr<const RequestExtras> extras;  // null: none
  int32_t priority = 0;                         // greater: earlier
};

// What a request says of the calls it wants.
struct ToolChoice {
  enum class Mode { kNone, kAuto, kRequired };
  Mode mode = Mode::kNone;
  std::string name;  // with kRequired: this tool, and once
  // The tools that may be called; empty: all that are offered.
  std::vector<std::string> allowed;
};

struct ChatRequest {
  GenerationOptions options;
  // An array of objects as the template sees them: `role`, `content` (null, a string or a list of parts) and
  // whatever else the client sent. Free-form by nature, so it stays JSON up to the template.
  Json messages;
  Json tools;                 // array, or null
  Json documents;             // array, or null
  Json chat_template_kwargs;  // object, or null
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;
  bool separate_reasoning = true;  // false: reasoning is part of the text
  bool stream_reasoning = true;    // false: it comes in one piece when it has ended
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

struct CompletionRequest {
  GenerationOptions options;
  // One entry a prompt: text, or token ids (then `text` is empty).
  struct Prompt {
    std::string text;
    std::vector<TokenId> ids;
    bool is_ids = false;
  };
  std::vector<Prompt> prompts;
  bool echo = false;
};

}  // namespace portico
