// OpenAI's routes: /v1/chat/completions, /v1/completions, /v1/models.
#pragma once

#include "api/router.h"

namespace portico::api::openai {

void AddOpenAiRoutes(Router& router);

}  // namespace portico::api::openai
