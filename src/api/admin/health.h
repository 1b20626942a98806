// Probes and metrics: /health, /readiness, /health_generate, /ping, /version, /metrics.
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddAdminRoutes(RouteTable& routes);

}  // namespace portico::api
