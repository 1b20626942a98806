// POST /v1/embeddings, /v1/classify, /encode and /classify.
#pragma once

#include "api/router.h"

namespace portico::api::openai {

void AddEmbeddingRoutes(Router& router);

}  // namespace portico::api::openai
