// SGLang's routes for operators: pause, continue, loads.
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddControlRoutes(RouteTable& routes);

}  // namespace portico::api
