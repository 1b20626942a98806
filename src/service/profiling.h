// Starting and stopping an engine's profiler, which none of the engines here has.
#pragma once

#include "base/status.h"
#include "service/model_registry.h"

namespace portico {

// FAILED_PRECONDITION with the reason; UNAVAILABLE while loading.
Status StartProfile(const ModelRegistry& models);
Status StopProfile(const ModelRegistry& models);

}  // namespace portico
