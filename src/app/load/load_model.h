// From the command line's options to a model that can serve: engine, tokenizer, chat template.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/options.h"
#include "base/clock.h"
#include "grammar/compile/grammar_compiler.h"
#include "net/loop/shard.h"
#include "service/serving_model.h"

namespace portico {

using LoadProgress = std::function<void(std::string_view stage, double fraction)>;

// The folder of the bundled demo model, wherever the program was started from. NOT_FOUND if it is not installed.
StatusOr<std::string> DemoModelPath();
// The script that starts SGLang's schedulers: it lies beside the program as the demo model does.
StatusOr<std::string> SglangLauncherPath();

// What the models of a server have together.
struct SharedResources {
  int64_t model_cache_bytes = 0;
  int32_t cores = 0;         // for an engine that names no threads
  int64_t mapped_bytes = 0;  // weights of the models that are loaded
  int64_t max_request_cost = kDefaultRequestCost;
  bool log_requests = false;
  Duration drain_time{};  // of the server's requests, and of another front end's that ends
  std::vector<net::Shard*> shards;  // of the server, for engines whose connections live on them
  std::shared_ptr<grammar::GrammarCompiler> grammars;  // null: none are compiled
};
SharedResources ShareResources(const ServeOptions& options);

// What can be wrong without a look at the model: its chat template, the type of its KV
// cache. Quick.
Status CheckBeforeLoading(const ModelOptions& options);

// Blocks; minutes for a first import. Every error is one sentence for the person who started the server. `joined`: the
// model's engine, where it is there already (JoinSglangEngines()).
StatusOr<std::unique_ptr<ServingModel>> LoadServingModel(const ModelOptions& options,
                                                         const SharedResources& shared,
                                                         const LoadProgress& progress,
                                                         std::unique_ptr<Engine> joined = nullptr);

// A model called `id` that workers elsewhere compute: its texts are made with the tokenizer and template at
// `tokenizer_path`, unless the options name others. With `like`, a model made so before from the same
// files, they are shared with it instead of read. Blocks.
StatusOr<std::unique_ptr<ServingModel>> MakeRemoteModel(const ModelOptions& options, std::string id,
                                                        std::unique_ptr<Engine> engine,
                                                        const std::string& tokenizer_path,
                                                        const ServingModel* like);

}  // namespace portico
