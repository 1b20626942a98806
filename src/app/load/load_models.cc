#include "app/load/load_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "app/load/load_model.h"
#include "app/load/sglang_model.h"
#include "app/omni/start_pipeline.h"
#include "app/program_path.h"
#include "app/progress_bar.h"
#include "app/serve/serve_command.h"
#include "base/log.h"
#include "base/processors.h"
#include "service/constraint/tag_budget.h"

namespace portico {
namespace {

// Of options that change answers, those that the model's engine does not have. (SGLang gets its own.)
void WarnOfIdleOptions(const ModelOptions& model, std::string_view id) {
  if (model.engine == "llama") return;
  const bool sglang = model.engine == "sglang";
  for (const auto& [given, flag] :
       {std::pair(sglang && model.threads != 0, "--threads"),
        std::pair(sglang && model.pooling != "auto", "--pooling"),
        std::pair(!sglang && model.enable_deterministic_inference,
                  "--enable-deterministic-inference"),
        std::pair(!sglang && model.return_original_logprob, "--return-original-logprob"),
        std::pair(!sglang && model.kv_cache_dtype != "auto", "--kv-cache-dtype"),
        std::pair(model.disable_radix_cache && model.engine == "grpc", "--disable-radix-cache")}) {
    if (given) LogWarning("model `{}`: {} has no effect with --engine {}", id, flag, model.engine);
  }
}

}  // namespace

Status LoadModels(const ServeOptions& options,
                  const std::shared_ptr<grammar::GrammarCompiler>& grammars, HttpService* service) {
  PORTICO_RETURN_IF_ERROR(CheckPipeline(options));
  ModelRegistry* models = &service->models();
  SetMaxTagBytes(static_cast<size_t>(options.grammar_text_bytes));
  SharedResources shared = ShareResources(options);
  shared.shards = service->shards();
  shared.grammars = grammars;
  const bool several = options.models.size() > 1;
  ProgressBar bar;
  PORTICO_ASSIGN_OR_RETURN(
      auto joined,
      JoinSglangEngines(options.models, shared, [&](std::string_view stage, double fraction) {
        bar.Update(stage, fraction);
      }));
  for (size_t i = 0; i < options.models.size(); ++i) {
    const ModelOptions& model = options.models[i];
    const std::string id = ModelId(model);
    WarnOfIdleOptions(model, id);
    const auto progress = [&](std::string_view stage, double fraction) {
      bar.Update(several ? fmt::format("{}: {}", id, stage) : std::string(stage), fraction);
    };
    auto loaded = LoadServingModel(model, shared, progress, std::move(joined[i]));
    if (!loaded.ok()) {
      if (!several) return loaded.status();
      return Error(loaded.status().code(),
                   fmt::format("model `{}`: {}", id, MessageOf(loaded.status())),
                   FieldOf(loaded.status()));
    }
    shared.mapped_bytes += (*loaded)->engine->info().weight_bytes;
    models->Add(*std::move(loaded));
  }
  PORTICO_RETURN_IF_ERROR(service->StartPipeline(options));
  models->Publish();
  return OkStatus();
}

grammar::GrammarCompilerOptions GrammarOptions(const ServeOptions& options) {
  grammar::GrammarCompilerOptions grammars;
  const auto cores = UsableProcessors();
  grammars.threads = std::clamp(cores / 4, 1, 8);
  grammars.cache_bytes = static_cast<size_t>(options.grammar_cache_bytes);
  grammars.limits.time =
      std::chrono::milliseconds(static_cast<int64_t>(options.grammar_timeout * 1000));
  grammars.limits.memory_bytes = options.grammar_memory_bytes;
  grammars.limits.text = {.bytes = options.grammar_text_bytes,
                          .depth = options.grammar_depth,
                          .branches = options.grammar_branches,
                          .rules = options.grammar_rules};
  grammars.restart = [] {
    return grammar::CompileProcess::StartProgram(kGrammarCommand, ProgramPath());
  };
  return grammars;
}

}  // namespace portico
