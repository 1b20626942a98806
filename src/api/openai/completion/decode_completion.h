// The body of POST /v1/completions → CompletionRequest.
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "api/common/generation_fields.h"
#include "base/status.h"
#include "message/text_request.h"

namespace portico::api::openai {

// OpenAI's default for completions (chat has none).
inline constexpr int32_t kDefaultCompletionTokens = 16;
// The most answers one request may ask for: prompts × best_of.
inline constexpr int64_t kMaxChoices = 4096;

// As DecodeChat (api/openai/chat/decode_chat.h). max_tokens is always set; best_of is n where it is absent;
// `logprobs: k` becomes logprobs with k alternatives. Token ids are >= 0; the service checks the
// vocabulary and empty text.
StatusOr<CompletionRequest> DecodeCompletion(const std::string& body, simdjson::dom::parser& parser,
                                             std::vector<std::string>* unknown_fields = nullptr);
// Asks `check` about a body without reading its prompts. What is wrong otherwise may be passed over.
Status CheckLongCompletion(const std::string& body, simdjson::dom::parser& parser,
                           const OptionsCheck& check);

}  // namespace portico::api::openai
