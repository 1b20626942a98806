// What a realtime session begins with, by the request that opens it.
#pragma once

#include "api/context.h"
#include "api/openai/realtime/session_config.h"
#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

// By the query (`model`, `intent`) and the headers. INVALID_ARGUMENT (field "intent") or NOT_FOUND (field "model"); INVALID_ARGUMENT,
// too, where the pipeline does not answer such sessions.
Status OpenSession(const net::HttpRequest& request, const ApiContext& api,
                   const pipeline::Pipeline& pipeline, RealtimeConfig* config);

}  // namespace portico::api::openai
