// GET, POST /v1/audio/voices, DELETE /v1/audio/voices/{name}: the voices there are, and those that
// clients upload for stages which imitate them.
#pragma once

#include <memory>
#include <string_view>

#include "api/context.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

void HandleVoices(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);
// Refused where no stage imitates voices.
void HandleVoiceUpload(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);
inline constexpr std::string_view kVoicesPath = "/v1/audio/voices/";
void HandleVoiceRemoval(std::unique_ptr<net::Exchange> exchange, ShardContext& shard);

}  // namespace portico::api::openai
