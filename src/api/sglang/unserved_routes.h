// Routes of SGLang that this server does not have: each says why, and what there is instead.
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddUnservedRoutes(RouteTable& routes);

}  // namespace portico::api
