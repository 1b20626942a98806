// The body of POST /v1/score → ScoreRequest.
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "message/score_request.h"

namespace portico::api::openai {

// As DecodeChat (api/openai/chat/decode_chat.h). `query` and `items` are texts, or both token ids; one text may stand for a
// list of one item.
StatusOr<ScoreRequest> DecodeScore(const std::string& body, simdjson::dom::parser& parser,
                                   std::vector<std::string>* unknown_fields = nullptr);

}  // namespace portico::api::openai
