// The bodies of POST /workers and PUT /workers/{id}: Portico's fields, and those of smg and sglang-router
// that mean something here. Their other fields are refused by name, with what has their place; null is as
// if a field were not there.
#pragma once

#include <string_view>

#include "base/status.h"
#include "router/worker.h"

namespace portico::api {

// INVALID_ARGUMENT with the field; so below.
StatusOr<router::WorkerSpec> ReadWorkerSpec(std::string_view body);

StatusOr<router::WorkerChange> ReadWorkerChange(std::string_view body);

}  // namespace portico::api
