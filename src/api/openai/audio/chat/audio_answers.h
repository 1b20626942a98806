// Answers with sound that come back as messages of a conversation.
#pragma once

#include "base/status.h"
#include "pipeline/transcripts.h"
#include "text/json.h"

namespace portico::api::openai {

// Of the assistant's messages, makes the text of `"audio": {"id": …}` the content where there is none: the transcript that
// the message has itself, or the one that is kept under the id. True if a message has changed. INVALID_ARGUMENT (field
// "messages") names an id that is not known.
StatusOr<bool> TakeAudioAnswers(const pipeline::Transcripts& transcripts, Json* messages);

}  // namespace portico::api::openai
