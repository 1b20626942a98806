// What control routes do to engines: to one model's, or to those of all models.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "service/model_registry.h"

namespace portico {

// Status call(Engine&) for the engine of that model; for "" for every engine that lives, or all if none does: one that
// is refused does not spare the others. The first error, which says whose it is where there are several models.
// UNAVAILABLE while loading, NOT_FOUND for a model that is not served.
template <typename Call>
Status ForEachEngine(const ModelRegistry& models, std::string_view model, Call call) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* named, models.Find(model));
  if (!model.empty()) return call(*named->engine);
  const std::vector<const ServingModel*> all = models.models();
  const auto lives = [](const ServingModel* m) { return m->engine->load().healthy; };
  const bool any_lives = std::any_of(all.begin(), all.end(), lives);
  Status first = OkStatus();
  for (const ServingModel* each : all) {
    if (any_lives && !lives(each)) continue;
    const Status status = call(*each->engine);
    if (status.ok() || !first.ok()) continue;
    first = all.size() == 1
                ? status
                : Error(status.code(), fmt::format("model `{}`: {}", each->id, MessageOf(status)));
  }
  return first;
}

}  // namespace portico
