#include "service/sampling_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico {
namespace {

Status CheckVocabulary(TokenId id, std::string_view field, int32_t vocab_size) {
  if (id >= 0 && id < vocab_size) return OkStatus();
  return InvalidArgument(field, fmt::format("{}: token id {} is not in the vocabulary (0 to {})",
                                            field, id, vocab_size - 1));
}

// SGLang: below this a temperature means greedy.
constexpr float kGreedyTemperature = 1e-6f;

}  // namespace

StatusOr<SamplingParams> MakeSampling(const GenerationOptions& options,
                                      const GenerationDefaults& defaults,
                                      const EngineInfo& engine) {
  SamplingParams sampling;
  auto pick = [](const auto& asked, const auto& model, auto fallback) {
    return asked ? *asked : model ? *model : fallback;
  };
  sampling.temperature = pick(options.temperature, defaults.temperature, 1.0f);
  sampling.top_p = pick(options.top_p, defaults.top_p, 1.0f);
  sampling.top_k = pick(options.top_k, defaults.top_k, -1);
  sampling.min_p = pick(options.min_p, defaults.min_p, 0.0f);
  sampling.repetition_penalty = pick(options.repetition_penalty, defaults.repetition_penalty, 1.0f);
  sampling.frequency_penalty = options.frequency_penalty.value_or(0.0f);
  sampling.presence_penalty = options.presence_penalty.value_or(0.0f);
  if (sampling.temperature < kGreedyTemperature) sampling.temperature = 0.0f;
  if (sampling.top_k == 0) sampling.top_k = -1;  // generation_config.json spells "all" as 0
  if (options.seed) sampling.seed = static_cast<uint64_t>(*options.seed);

  for (auto [id, bias] : options.logit_bias) {
    PORTICO_RETURN_IF_ERROR(CheckVocabulary(id, "logit_bias", engine.vocab_size));
  }
  for (TokenId id : options.stop_token_ids) {
    PORTICO_RETURN_IF_ERROR(CheckVocabulary(id, "stop_token_ids", engine.vocab_size));
  }
  sampling.logit_bias = options.logit_bias;
  sampling.stop_token_ids = options.stop_token_ids;
  sampling.ignore_eos = options.ignore_eos;
  sampling.min_new_tokens = options.min_tokens;
  return sampling;
}

StatusOr<int32_t> FitContext(int64_t prompt_tokens, const GenerationOptions& options,
                             const EngineInfo& engine, std::string_view prompt_field) {
  int64_t context = engine.context_length;
  if (prompt_tokens == 0) {
    return InvalidArgument(prompt_field, fmt::format("{} gives no tokens", prompt_field));
  }
  // A prompt that fills the context leaves no room for an answer; only an echo without one may do that.
  bool wants_answer = options.max_tokens.value_or(1) > 0;
  if (prompt_tokens > context || (prompt_tokens == context && wants_answer)) {
    return InvalidArgument(
        prompt_field, fmt::format("The input ({} tokens) is longer than the model's context length "
                                  "({} tokens).",
                                  prompt_tokens, context));
  }
  int64_t room = context - prompt_tokens;
  if (!options.max_tokens) {
    int64_t fallback = engine.default_max_new_tokens;
    return static_cast<int32_t>(fallback > 0 ? std::min(fallback, room) : room);
  }
  int64_t asked = *options.max_tokens;
  if (asked > room) {
    return InvalidArgument(
        options.max_tokens_field,
        fmt::format(
            "Requested token count exceeds the model's maximum context length of {} tokens. You "
            "requested a total of {} tokens: {} tokens from the input messages and {} tokens "
            "for the completion. Please reduce the number of tokens in the input messages or "
            "the completion to fit within the limit.",
            context, prompt_tokens + asked, prompt_tokens, asked));
  }
  return static_cast<int32_t>(asked);
}

}  // namespace portico
