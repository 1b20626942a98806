// Pausing and continuing engines, for POST /pause_generation and gRPC alike. Pure calls into the
// engines; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "engine/engine.h"
#include "service/model_registry.h"

namespace portico {

// "abort", "retract" or "in_place"; INVALID_ARGUMENT (field "mode") for every other word, and for
// none.
StatusOr<PauseMode> ParsePauseMode(std::string_view mode);

// True while an engine is paused.
bool AnyPaused(const ModelRegistry& models);

}  // namespace portico
