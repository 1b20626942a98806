// OpenAI's routes: /v1/chat/completions, /v1/completions, /v1/models.
#pragma once

#include "api/route_table.h"

namespace portico::api::openai {

void AddOpenAiRoutes(RouteTable& routes);

}  // namespace portico::api::openai
