// Replacing a model's weights while the server runs.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "service/model_registry.h"

namespace portico {

// Of the model of that name, or the default one for "". As Engine::UpdateWeights: blocks while the
// weights are read, so never on a shard. Also INVALID_ARGUMENT (field "model_path") for an empty path,
// and the errors of ModelRegistry::Find.
Status UpdateWeights(const ModelRegistry& models, std::string_view name,
                     const std::string& model_path);

}  // namespace portico
