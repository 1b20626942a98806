// Replacing a model's weights while the server runs.
#pragma once

#include <string>
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

// Weights of that model (for "" of every model that lives) have been replaced, or only named anew, by a call that its
// engine passed through: from now on answers are of this version.
void NoteWeightVersion(const ModelRegistry& models, std::string_view name,
                       const std::string& version);

}  // namespace portico
