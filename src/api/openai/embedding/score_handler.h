// POST /v1/score.
#pragma once

#include "api/route_table.h"

namespace portico::api::openai {

void AddScoreRoute(RouteTable& routes);

}  // namespace portico::api::openai
