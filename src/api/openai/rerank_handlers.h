// POST /v1/rerank in SGLang's form, /rerank and /v2/rerank in Cohere's.
#pragma once

#include "api/router.h"

namespace portico::api::openai {

void AddRerankRoutes(Router& router);

}  // namespace portico::api::openai
