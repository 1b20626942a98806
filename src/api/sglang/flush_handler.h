// GET and POST /flush_cache.
#pragma once

#include <memory>

#include "api/context.h"
#include "net/http/exchange.h"

namespace portico::api {

void HandleFlush(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

}  // namespace portico::api
