// GET /health_generate: one token through an engine, within a time limit.
#pragma once

#include <memory>

#include "api/context.h"

namespace portico::api {

void HandleHealthGenerate(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

}  // namespace portico::api
