#include "service/control/pause.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico {

StatusOr<PauseMode> ParsePauseMode(std::string_view mode) {
  if (mode == "abort") return PauseMode::kAbort;
  if (mode == "retract") return PauseMode::kRetract;
  if (mode == "in_place") return PauseMode::kInPlace;
  return InvalidArgument(
      "mode", fmt::format("mode must be abort, retract or in_place, got \"{:.48}\"", mode));
}

bool AnyPaused(const ModelRegistry& models) {
  const auto all = models.models();
  return std::any_of(all.begin(), all.end(),
                     [](const ServingModel* model) { return model->engine->load().paused; });
}

}  // namespace portico
