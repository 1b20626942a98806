// POST /generate: SGLang's native text generation.
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddGenerateRoute(RouteTable& routes);

}  // namespace portico::api
