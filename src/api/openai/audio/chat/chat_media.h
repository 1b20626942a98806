// What a chat names by its address, fetched before the chat runs.
#pragma once

#include <memory>

#include "api/context.h"
#include "api/openai/audio/chat/decode_chat_audio.h"
#include "net/http/exchange.h"

namespace portico::api::openai {

using MediaThen = void (*)(std::unique_ptr<net::Exchange>, ShardContext&, AudioChat);

// Puts the bytes of chat.media into the request and calls `then` with no media left, or answers what is
// wrong. A client that leaves, and an abort of the request's id, end it.
void FetchMedia(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, AudioChat chat,
                MediaThen then);

}  // namespace portico::api::openai
