// The admin API of the gateway's workers: /workers, and the older /add_worker, /remove_worker,
// /list_workers.
#pragma once

#include <memory>
#include <string_view>

#include "api/gateway/gateway_routes.h"

namespace portico::api {

bool IsWorkerPath(std::string_view path);
void HandleWorkers(net::Exchange& exchange, GatewayContext& context);

// Worker, state and load of each, as JSON.
std::string WorkersJson(router::Gateway& gateway);

// Appends the workers' gauges and counters in Prometheus' text form, by their ids.
void AppendWorkerMetrics(router::Gateway& gateway, std::string* out);

}  // namespace portico::api
