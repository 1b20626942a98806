// Replacing the default model's weights while the server runs.
#pragma once

#include <string>

#include "base/status.h"
#include "service/model_registry.h"

namespace portico {

// As Engine::UpdateWeights: blocks while the weights are read, so never on a shard. Also
// INVALID_ARGUMENT (field "model_path") for an empty path, UNAVAILABLE while loading.
Status UpdateWeights(const ModelRegistry& models, const std::string& model_path);

}  // namespace portico
