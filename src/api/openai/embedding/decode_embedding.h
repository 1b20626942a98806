// Bodies of POST /v1/embeddings, /v1/classify and /v1/rerank, and of SGLang's /encode and /classify.
#pragma once

#include <simdjson.h>

#include <string>

#include "base/status.h"
#include "message/embedding_request.h"

namespace portico::api::openai {

// Errors, `parser` and `body` as in api/openai/chat/decode_chat.h. `input`: texts or token ids.
StatusOr<EmbeddingRequest> DecodeEmbedding(const std::string& body, simdjson::dom::parser& parser);
StatusOr<EmbeddingRequest> DecodeClassify(const std::string& body, simdjson::dom::parser& parser);
// SGLang's: `text` or `input_ids`, never both.
StatusOr<EmbeddingRequest> DecodeEncode(const std::string& body, simdjson::dom::parser& parser);
// The same, or vLLM's: `input`, which is then `input_field`.
StatusOr<EmbeddingRequest> DecodeNativeClassify(const std::string& body,
                                                simdjson::dom::parser& parser);
// SGLang's and Cohere's: a document is a text, or an object with `text`.
StatusOr<RerankRequest> DecodeRerank(const std::string& body, simdjson::dom::parser& parser);

// Reads `truncate_prompt_tokens`.
Status ReadTruncate(std::string_view name, simdjson::dom::element value,
                    std::optional<int32_t>* truncate);
template <typename Request>
Status ReadTruncateField(std::string_view name, simdjson::dom::element value, Request* request) {
  return ReadTruncate(name, value, &request->truncate);
}

}  // namespace portico::api::openai
