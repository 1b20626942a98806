// From a request's options to what the engine needs: defaults, limits that depend on the model, context checks.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "engine/engine.h"
#include "message/generation_defaults.h"
#include "message/sampling.h"
#include "message/text_request.h"
#include "tokenizer/decode/stop_matcher.h"

namespace portico {

// Priority: the request, then the model's defaults, then OpenAI's (temperature 1, top_p 1, everything else off).
// INVALID_ARGUMENT for ids outside the vocabulary, for too many of them, and where min_tokens leaves no token that could
// be drawn. max_new_tokens is FitContext's.
StatusOr<std::shared_ptr<const SamplingParams>> MakeSampling(const GenerationOptions& options,
                                                             const GenerationDefaults& defaults,
                                                             const EngineInfo& engine);

// What all streams of a request share, made once of its options.
struct SharedOptions {
  std::shared_ptr<const SamplingParams> sampling;
  std::shared_ptr<const StopStrings> stops;  // null: none
};
// Takes stop, stop_token_ids and logit_bias out of the options. As MakeSampling; also INVALID_ARGUMENT for stop strings that
// are too many or too long.
StatusOr<SharedOptions> ShareOptions(const GenerationDefaults& defaults, const EngineInfo& engine,
                                     GenerationOptions* options);

// The number of new tokens for a prompt of `prompt_tokens`: max_tokens, else the engine's default, else what the
// context leaves. INVALID_ARGUMENT with SGLang's messages and both numbers if it does not fit; `prompt_field`
// names the field to blame for a long prompt ("messages", "prompt").
StatusOr<int32_t> FitContext(int64_t prompt_tokens, const GenerationOptions& options,
                             const EngineInfo& engine, std::string_view prompt_field);

}  // namespace portico
