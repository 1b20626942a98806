// Parts of answers that several APIs write alike.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "message/text_delta.h"

namespace portico::api {

inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

// Appends the stop string as text, the stop token as its number, or null.
void AppendMatchedStop(const MatchedStop& stop, std::string* out);
// Appends `[1,2,3]`.
void AppendTokenIds(std::span<const TokenId> ids, std::string* out);
// Appends a log-probability: the shortest text of the float; −9999.0 for minus infinity (as
// OpenAI).
void AppendLogprob(float logprob, std::string* out);
// Appends `data: {"error":{…}}` and the end of the stream.
void AppendErrorEvents(const Status& error, std::string* out);
// Why a failed delta failed; never OK.
Status ErrorOf(const TextDelta& delta);

// True if the delta shows the client something apart from its finish reason: text, or a token that
// is not the stop token that ended the answer.
bool HasContent(const TextDelta& delta);

}  // namespace portico::api
