// What a chat may ask where no engine of this server answers it: another server does, or a stage of a
// pipeline.
#pragma once

#include "base/status.h"
#include "message/text_request.h"
#include "pipeline/request.h"

namespace portico {

// INVALID_ARGUMENT naming the first field that only an engine can honour. Sampling parameters, stop
// strings and tools are for those who answer.
Status CheckPlainChat(const ChatRequest& chat);

// INVALID_ARGUMENT where it is a speech or a transcription: stages that answer chats answer no others.
Status CheckIsChat(const pipeline::Request& request);

// INVALID_ARGUMENT naming the first field whose result has no place in an answer with sound.
Status CheckSpokenChat(const GenerationOptions& options);

}  // namespace portico
