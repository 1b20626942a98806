#include "service/plan/sampling_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "message/sampling_ranges.h"

namespace portico {
namespace {

Status CheckVocabulary(TokenId id, std::string_view field, int32_t vocab_size) {
  if (id >= 0 && id < vocab_size) return OkStatus();
  return InvalidArgument(field, fmt::format("{}: token id {} is not in the vocabulary (0 to {})",
                                            field, id, vocab_size - 1));
}

Status CheckCount(size_t count, size_t most, std::string_view field, std::string_view things) {
  if (count <= most) return OkStatus();
  return InvalidArgument(
      field, fmt::format("{} must hold at most {} {}, got {}", field, most, things, count));
}

// Until min_tokens neither the stop tokens nor the model's end tokens may be drawn.
Status CheckSomeTokenIsLeft(const GenerationOptions& options, const EngineInfo& engine) {
  const size_t masked = options.stop_token_ids.size() + engine.eos_token_ids.size();
  if (options.min_tokens == 0 || masked < static_cast<size_t>(engine.vocab_size)) return OkStatus();
  std::vector<TokenId> ids = options.stop_token_ids;
  ids.insert(ids.end(), engine.eos_token_ids.begin(), engine.eos_token_ids.end());
  std::sort(ids.begin(), ids.end());
  const auto end = std::unique(ids.begin(), ids.end());
  if (end - ids.begin() < engine.vocab_size) return OkStatus();
  return InvalidArgument(
      "stop_token_ids",
      "stop_token_ids contains the whole vocabulary, so min_tokens leaves no token to sample");
}

// SGLang: below this a temperature means greedy.
constexpr float kGreedyTemperature = 1e-6f;

}  // namespace

StatusOr<std::shared_ptr<const SamplingParams>> MakeSampling(const GenerationOptions& options,
                                                             const GenerationDefaults& defaults,
                                                             const EngineInfo& engine) {
  auto made = std::make_shared<SamplingParams>();
  SamplingParams& sampling = *made;
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

  PORTICO_RETURN_IF_ERROR(
      CheckCount(options.logit_bias.size(), kMaxLogitBiases, "logit_bias", "token ids"));
  PORTICO_RETURN_IF_ERROR(
      CheckCount(options.stop_token_ids.size(), kMaxStopTokenIds, "stop_token_ids", "token ids"));
  for (auto [id, bias] : options.logit_bias) {
    PORTICO_RETURN_IF_ERROR(CheckVocabulary(id, "logit_bias", engine.vocab_size));
  }
  for (TokenId id : options.stop_token_ids) {
    PORTICO_RETURN_IF_ERROR(CheckVocabulary(id, "stop_token_ids", engine.vocab_size));
  }
  PORTICO_RETURN_IF_ERROR(CheckSomeTokenIsLeft(options, engine));
  sampling.logit_bias = options.logit_bias;
  sampling.stop_token_ids = options.stop_token_ids;
  sampling.ignore_eos = options.ignore_eos;
  sampling.min_new_tokens = options.min_tokens;
  return made;
}

StatusOr<SharedOptions> ShareOptions(const GenerationDefaults& defaults, const EngineInfo& engine,
                                     GenerationOptions* options) {
  SharedOptions shared;
  PORTICO_RETURN_IF_ERROR(CheckCount(options->stop.size(), kMaxStops, "stop", "strings"));
  for (const std::string& stop : options->stop) {
    if (stop.size() <= kMaxStopBytes) continue;
    return InvalidArgument("stop", fmt::format("a stop string must have at most {} bytes, got {}",
                                               kMaxStopBytes, stop.size()));
  }
  PORTICO_ASSIGN_OR_RETURN(shared.sampling, MakeSampling(*options, defaults, engine));
  if (!options->stop.empty()) {
    shared.stops = std::make_shared<const StopStrings>(std::move(options->stop));
  }
  options->stop = {};
  options->stop_token_ids = {};
  options->logit_bias = {};
  return shared;
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
    return ContextExceeded(
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
    return ContextExceeded(
        options.max_tokens_field,
        fmt::format(
            "Requested token count exceeds the model's maximum context length of {} tokens. You "
            "requested a total of {} tokens: {} tokens from the input messages and {} tokens "
            "for the completion. Please reduce the number of tokens in the input messages or "
            "the completion to fit within the limit.",
            context, uint64_t(prompt_tokens) + uint64_t(asked), prompt_tokens, asked));
  }
  return static_cast<int32_t>(asked);
}

}  // namespace portico
