// Refuses what an engine cannot honour, by what it says of itself (EngineInfo::can). One table for all APIs.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/engine.h"
#include "message/constraint.h"
#include "message/request_extras.h"

namespace portico {

// INVALID_ARGUMENT naming the field, as SGLang spells it, of the first thing that this engine lacks. Null: not asked for.
Status CheckCapabilities(const EngineInfo& engine, const Constraint* constraint,
                         const RequestExtras* extras, int32_t priority);

// INVALID_ARGUMENT: media are given (not null), and the engine takes none.
Status CheckMedia(const EngineInfo& engine, const RequestMedia* media);

}  // namespace portico
