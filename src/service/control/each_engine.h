// What control routes do to engines: to one model's, or to those of all models.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "engine/control.h"
#include "service/model_registry.h"

namespace portico {

// How long control work may take, where the client does not say.
inline constexpr Duration kControlPatience = std::chrono::minutes(1);
// Reading weights takes as long as a start.
inline constexpr Duration kWeightsPatience = std::chrono::minutes(30);

// Gives `control` to the engine of that model; for "" to every engine that lives, or to all if none does: one that is
// refused does not spare the others. `done` is called once, when the last one has answered: on any thread, possibly
// before this returns. It gets the first error in the models' order, which says whose it is where there are several.
// UNAVAILABLE while loading, NOT_FOUND for a model that is not served. What succeeds leaves a line (control_log.h).
void ControlEngines(const ModelRegistry& models, std::string_view model,
                    const EngineControl& control, TimePoint deadline, ControlDone done);

}  // namespace portico
