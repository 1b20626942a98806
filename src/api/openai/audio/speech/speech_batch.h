// POST /v1/audio/speech/batch: several texts, each answered or refused by itself.
#pragma once

#include <memory>

#include "api/context.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

void HandleSpeechBatch(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

}  // namespace portico::api::openai
