// POST /update_weights_from_disk.
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddWeightsRoute(RouteTable& routes);

}  // namespace portico::api
