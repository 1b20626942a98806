// POST /v1/rerank in SGLang's form, /rerank and /v2/rerank in Cohere's.
#pragma once

#include "api/route_table.h"

namespace portico::api::openai {

void AddRerankRoutes(RouteTable& routes);

}  // namespace portico::api::openai
