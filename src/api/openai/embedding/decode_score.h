// The body of POST /v1/score → ScoreRequest.
#pragma once

#include <simdjson.h>

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/score_request.h"

namespace portico::api::openai {

// As DecodeChat (api/openai/chat/decode_chat.h). `query` and `items` are texts, or both token ids; one text may stand for a
// list of one item.
StatusOr<ScoreRequest> DecodeScore(const std::string& body, simdjson::dom::parser& parser,
                                   std::vector<std::string>* unknown_fields = nullptr);

// Looks at a request whose query and items have not been read: they are long, and may cost too much together. `query_ids`:
// 0 where the query is a text.
using ScoreCheck =
    std::function<Status(const ScoreRequest& request, size_t query_ids, size_t items)>;
// Asks `check` about a body without reading these. What is wrong otherwise may be passed over.
Status CheckLongScore(const std::string& body, simdjson::dom::parser& parser,
                      const ScoreCheck& check);

}  // namespace portico::api::openai
