// Answers to chats that are heard or answered aloud.
#pragma once

#include <memory>
#include <string>

#include "api/openai/answer.h"
#include "api/openai/audio/chat/decode_chat_audio.h"
#include "api/openai/audio/pipeline_call.h"

namespace portico::api::openai {

// Answers with text and sound, whole or as events in the order in which they are made.
void AnswerAudioChat(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, AudioChat chat);

}  // namespace portico::api::openai
