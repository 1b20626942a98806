// Bodies of POST /v1/embeddings, /v1/classify and /v1/rerank, and of SGLang's /encode and /classify.
#pragma once

#include <simdjson.h>

#include <string>

#include "base/status.h"
#include "message/embedding_request.h"

namespace portico::api::openai {

// Errors, `parser` and `body` as in decode_chat.h. `input`: texts or token ids.
StatusOr<EmbeddingRequest> DecodeEmbedding(const std::string& body, simdjson::dom::parser& parser);
// SGLang's: `text` or `input_ids`, never both.
StatusOr<EmbeddingRequest> DecodeEncode(const std::string& body, simdjson::dom::parser& parser);
StatusOr<RerankRequest> DecodeRerank(const std::string& body, simdjson::dom::parser& parser);

}  // namespace portico::api::openai
