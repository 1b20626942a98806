// Refuses what an engine cannot honour, by what it says of itself (EngineInfo::can). One table for all APIs.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "engine/engine.h"
#include "message/constraint.h"
#include "message/request_extras.h"

namespace portico {

// INVALID_ARGUMENT naming the field, as SGLang spells it, of the first thing that this engine lacks. Null: not asked for.
Status CheckCapabilities(const EngineInfo& engine, const Constraint* constraint,
                         const RequestExtras* extras, int32_t priority);

// INVALID_ARGUMENT naming `field`, which asks for log-probabilities: the engine reports none, or none of prompts where
// `of_prompts`.
Status CheckLogprobs(const EngineInfo& engine, std::string_view field, bool of_prompts);

// INVALID_ARGUMENT naming `field`: the rank is none of `ranks`, which the engine lets a request name.
Status CheckRank(int32_t rank, int32_t ranks, std::string_view field);

// INVALID_ARGUMENT naming the item's field and place: media are given (not null), and the engine does not take one's kind.
Status CheckMedia(const EngineInfo& engine, const RequestMedia* media);

}  // namespace portico
