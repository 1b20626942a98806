// From a request's options to what the engine needs: defaults, limits that depend on the model, context checks.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/engine.h"
#include "message/generation_defaults.h"
#include "message/sampling.h"
#include "message/text_request.h"

namespace portico {

// Priority: the request, then the model's defaults, then OpenAI's (temperature 1, top_p 1, everything else off).
// INVALID_ARGUMENT for ids outside the vocabulary. max_new_tokens is left to FitContext.
StatusOr<SamplingParams> MakeSampling(const GenerationOptions& options,
                                      const GenerationDefaults& defaults, const EngineInfo& engine);

// The number of new tokens for a prompt of `prompt_tokens`: max_tokens, else the engine's default, else what the
// context leaves. INVALID_ARGUMENT with SGLang's messages and both numbers if it does not fit; `prompt_field`
// names the field to blame for a long prompt ("messages", "prompt").
StatusOr<int32_t> FitContext(int64_t prompt_tokens, const GenerationOptions& options,
                             const EngineInfo& engine, std::string_view prompt_field);

}  // namespace portico
