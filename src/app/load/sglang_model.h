// The SGLang engines of a model, as its options name them: one that is started or joined, or several behind a policy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/load/load_model.h"
#include "app/options/options.h"
#include "engine/engine.h"

namespace portico {

// `path`: the model's. Blocks until all of them are ready; several start at the same time.
// UNIMPLEMENTED: this SGLang speaks another wire than Portico (app/serve/sglang_fallback.h). Errors are sentences.
StatusOr<std::unique_ptr<Engine>> MakeSglangEngine(const ModelOptions& options,
                                                   const std::string& path,
                                                   const SharedResources& shared,
                                                   const LoadProgress& progress);

// The engines of all models with --attach, which are joined at the same time: each may wait for another front end to end.
// One a model, null for those that are not joined, and everywhere where only one model is. Errors name the model.
StatusOr<std::vector<std::unique_ptr<Engine>>> JoinSglangEngines(
    const std::vector<ModelOptions>& models, const SharedResources& shared,
    const LoadProgress& progress);

// What engine `index` has apart from the first one, whose arguments are `flags`: its first GPU, unless it runs on a CPU, and
// where it publishes its KV-cache events (a port beyond those of the engines before it, or a file of its own).
std::vector<std::string> ReplicaFlags(const std::vector<std::string>& flags, int index);

}  // namespace portico
