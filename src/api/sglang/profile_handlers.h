// /start_profile, /stop_profile, /start_request_profile and /stop_request_profile
// (docs/profiling.md).
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddProfileRoutes(RouteTable& routes);

}  // namespace portico::api
