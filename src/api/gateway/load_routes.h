// GET /get_loads, which is /get_load and /v1/loads too: what is in flight on each worker.
#pragma once

#include <string>
#include <string_view>

#include "router/fleet/worker_set.h"

namespace portico::api {

bool IsLoadsPath(std::string_view path);

// `workers`, as sglang-router has it: requests in flight by this gateway's count. `loads`, as smg has it: what workers have last
// reported of themselves, of those that have; null for what they did not say. `urls`: they may be shown; else `worker` is the id.
std::string LoadsJson(const router::WorkerSet& set, bool urls);

}  // namespace portico::api
