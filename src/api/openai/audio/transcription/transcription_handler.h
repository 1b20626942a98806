// POST /v1/audio/transcriptions and /v1/audio/translations.
#pragma once

#include <memory>

#include "api/context.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

void HandleTranscription(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);
// Refuses where no stage of the pipeline translates.
void HandleTranslation(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

}  // namespace portico::api::openai
