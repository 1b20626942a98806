// Probes and metrics: /health, /readiness, /health_generate, /ping, /version, /metrics.
#pragma once

#include "api/router.h"

namespace portico::api {

void AddAdminRoutes(Router& router);

}  // namespace portico::api
