// Replacing a model's weights while the server runs.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "engine/control.h"
#include "service/model_registry.h"

namespace portico {

// What happens beside the exchange of the weights itself.
struct WeightUpdate {
  UpdateWeightsControl control;
  bool keep_pause =
      false;  // the engine is paused afterwards, in place, whether it was before or not
};

// Of the model of that name, or the default one for "". `done` as Engine::Control has it, with the errors of
// UpdateWeightsControl, of PauseControl, of ModelRegistry::Find, and INVALID_ARGUMENT (field "model_path") for an empty
// path.
void UpdateWeights(const ModelRegistry& models, std::string_view name, WeightUpdate update,
                   TimePoint deadline, ControlDone done);

}  // namespace portico
