#include "service/profiling.h"

#include <fmt/format.h>

namespace portico {

Status StartProfile(const ModelRegistry& models) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, models.Find(""));
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("the engine {} has no profiler; /metrics has its counters, and perf can "
                           "attach to this process",
                           model->engine->info().name));
}

Status StopProfile(const ModelRegistry& models) {
  PORTICO_RETURN_IF_ERROR(models.Find("").status());
  return Error(StatusCode::kFailedPrecondition, "no profile has been started");
}

}  // namespace portico
