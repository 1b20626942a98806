// From the command line's options to a model that can serve: engine, tokenizer, chat template.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/options.h"
#include "service/serving_model.h"

namespace portico {

using LoadProgress = std::function<void(std::string_view stage, double fraction)>;

// The folder of the bundled demo model, wherever the program was started from. NOT_FOUND if it is not installed.
StatusOr<std::string> DemoModelPath();

// What the models of a server have together.
struct SharedResources {
  int64_t model_cache_bytes = 0;
  int32_t cores = 0;         // for an engine that names no threads
  int64_t mapped_bytes = 0;  // weights of the models that are loaded
};
SharedResources ShareResources(const ServeOptions& options);

// Blocks; minutes for a first import. Every error is one sentence for the person who started the server.
StatusOr<std::unique_ptr<ServingModel>> LoadServingModel(const ModelOptions& options,
                                                         const SharedResources& shared,
                                                         const LoadProgress& progress);

}  // namespace portico
