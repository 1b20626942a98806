// SGLang's routes for what only some engines can do: sessions, adapters, weights from other processes, memory, and the
// scheduler's own switches. Other engines refuse them (engine/control.h).
#pragma once

#include "api/route_table.h"

namespace portico::api {

void AddEngineRoutes(RouteTable& routes);

}  // namespace portico::api
