// GET /v1/realtime: OpenAI's realtime conversation over a WebSocket.
#pragma once

#include <memory>

#include "api/context.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

void HandleRealtime(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

}  // namespace portico::api::openai
