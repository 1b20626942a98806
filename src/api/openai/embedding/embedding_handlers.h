// POST /v1/embeddings, /v1/classify, /encode and /classify.
#pragma once

#include "api/route_table.h"

namespace portico::api::openai {

void AddEmbeddingRoutes(RouteTable& routes);

}  // namespace portico::api::openai
