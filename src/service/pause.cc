#include "service/pause.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico {
namespace {

template <typename Call>
Status ForEachEngine(const ModelRegistry& models, Call call) {
  PORTICO_RETURN_IF_ERROR(models.Find("").status());
  for (const ServingModel* model : models.models()) {
    PORTICO_RETURN_IF_ERROR(call(*model->engine));
  }
  return OkStatus();
}

}  // namespace

StatusOr<PauseMode> ParsePauseMode(std::string_view mode) {
  if (mode == "abort") return PauseMode::kAbort;
  if (mode == "retract") return PauseMode::kRetract;
  if (mode == "in_place") return PauseMode::kInPlace;
  return InvalidArgument(
      "mode", fmt::format("mode must be abort, retract or in_place, got \"{:.48}\"", mode));
}

Status PauseEngines(const ModelRegistry& models, PauseMode mode) {
  return ForEachEngine(models, [mode](Engine& engine) { return engine.Pause(mode); });
}

Status ContinueEngines(const ModelRegistry& models) {
  return ForEachEngine(models, [](Engine& engine) { return engine.Continue(); });
}

bool AnyPaused(const ModelRegistry& models) {
  const auto all = models.models();
  return std::any_of(all.begin(), all.end(),
                     [](const ServingModel* model) { return model->engine->load().paused; });
}

}  // namespace portico
