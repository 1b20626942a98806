// POST /tokenize and /detokenize, also under /v1.
#pragma once

#include <memory>

#include "api/context.h"

namespace portico::api {

void HandleTokenize(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);
void HandleDetokenize(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

}  // namespace portico::api
