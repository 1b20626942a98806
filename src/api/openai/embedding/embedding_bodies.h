// Answers of POST /v1/embeddings, /v1/classify, /v1/rerank and /rerank, made of what an engine pooled. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/answer.h"
#include "service/pooling/pooled_values.h"
#include "service/pooling/pooling_run.h"
#include "service/pooling/rerank.h"

namespace portico::api::openai {

// `base64`: each vector as base64 of its little-endian floats, as the openai package asks for it.
std::string EmbeddingBody(const std::string& model, const VectorForm& form, bool base64,
                          PoolingResult result);

// The likeliest of the labels and the probabilities of all, or with `activation` false their logits.
std::string ClassifyBody(const AnswerHead& head, const EngineInfo& engine, bool activation,
                         PoolingResult result);

struct RerankForm {
  RelevanceLabels labels;
  std::vector<std::string> documents;  // as they are returned; empty: they are not
  std::optional<int32_t> top_n;
  bool sigmoid = false;  // of the scores
};

// SGLang's: a list with score, document, index and meta_info.
std::string RerankBody(const std::string& rid, std::string_view weight_version,
                       const RerankForm& form, PoolingResult result);
// Cohere's: results with index, relevance_score and document.text.
std::string CohereRerankBody(const AnswerHead& head, const RerankForm& form, PoolingResult result);

}  // namespace portico::api::openai
