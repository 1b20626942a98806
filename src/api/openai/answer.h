// What chat and completion answers have in common.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "message/text_delta.h"

namespace portico::api::openai {

// The facts that every object of one answer repeats.
struct AnswerHead {
  std::string id;       // "chatcmpl-<hex>", "cmpl-<hex>", or the client's rid
  int64_t created = 0;  // Unix seconds
  std::string model;    // the served name
};

// `prefix` ("chatcmpl-") begins an id that is made where the client gave no rid.
AnswerHead MakeAnswerHead(std::string_view prefix, const std::string& rid,
                          const std::string& model);

// Appends `{"id":…,"object":…,"created":…,"model":…,"choices":[`.
void AppendAnswerHead(const AnswerHead& head, std::string_view object, std::string* out);
// Appends `{"prompt_tokens":…}`.
void AppendUsage(const TokenUsage& usage, std::string* out);
// Appends the stop string as text, the stop token as its number, or null.
void AppendMatchedStop(const MatchedStop& stop, std::string* out);
// Appends `[1,2,3]`.
void AppendTokenIds(std::span<const TokenId> ids, std::string* out);
// Appends a log-probability: the shortest text of the float; −9999.0 for minus infinity (as
// OpenAI).
void AppendLogprob(float logprob, std::string* out);
// Appends `data: {"error":{…}}` and the end of the stream.
void AppendErrorEvents(const Status& error, std::string* out);

inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

// Why a failed delta failed; never OK.
Status ErrorOf(const TextDelta& delta);

// True if the delta shows the client something apart from its finish reason: text, or a token that
// is not the stop token that ended the answer.
bool HasContent(const TextDelta& delta);

}  // namespace portico::api::openai
