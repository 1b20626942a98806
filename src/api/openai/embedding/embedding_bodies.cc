#include "api/openai/embedding/embedding_bodies.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "api/sglang/pooling_meta.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

static_assert(std::endian::native == std::endian::little);

// Of a float in JSON, with its comma.
constexpr size_t kFloatBytes = 14;

void AppendBase64(std::span<const float> values, std::string* out) {
  const size_t bytes = values.size() * sizeof(float);
  const size_t start = out->size() + 1;
  // The encoder ends its text with a zero byte.
  out->resize(start + (bytes + 2) / 3 * 4 + 1);
  (*out)[start - 1] = '"';
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out->data() + start),
                  reinterpret_cast<const unsigned char*>(values.data()), static_cast<int>(bytes));
  out->back() = '"';
}

void AppendPoolingUsage(const PoolingResult& result, std::string* out) {
  out->append("\"usage\":{\"prompt_tokens\":");
  AppendJsonInt(result.prompt_tokens, out);
  out->append(",\"total_tokens\":");
  AppendJsonInt(result.prompt_tokens, out);
  out->append(",\"completion_tokens\":0,\"prompt_tokens_details\":null}");
}

std::vector<RankedDocument> Ranked(const RerankForm& form, const PoolingResult& result) {
  std::vector<float> scores;
  scores.reserve(result.outputs.size());
  for (const PoolingOutput& output : result.outputs) {
    float score = form.labels.Of(output.values);
    if (form.sigmoid) ToProbabilities({&score, 1}, ProblemType::kSingleLabel);
    scores.push_back(score);
  }
  return Rank(scores, form.top_n);
}

}  // namespace

std::string EmbeddingBody(const std::string& model, const VectorForm& form, bool base64,
                          PoolingResult result) {
  std::string body = "{\"object\":\"list\",\"data\":[";
  const size_t one = static_cast<size_t>(form.size) * (base64 ? 6 : kFloatBytes) + 64;
  body.reserve(body.size() + result.outputs.size() * one + 256);
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    std::vector<float>& vector = result.outputs[i].values;
    const std::optional<SparseVector>& sparse = result.outputs[i].sparse;
    if (!sparse) form.Apply(&vector);
    body.append(i > 0 ? "," : "").append("{\"object\":\"embedding\",\"embedding\":");
    if (sparse) {
      sglang::AppendSparseVector(*sparse, &body);
    } else if (base64) {
      AppendBase64(vector, &body);
    } else {
      AppendJsonFloats(vector, &body);
    }
    body.append(",\"index\":");
    AppendJsonInt(static_cast<int64_t>(i), &body);
    body.push_back('}');
  }
  body.append("],\"model\":");
  AppendJsonString(model, &body);
  body.push_back(',');
  AppendPoolingUsage(result, &body);
  body.push_back('}');
  return body;
}

std::string ClassifyBody(const AnswerHead& head, const EngineInfo& engine, bool activation,
                         PoolingResult result) {
  std::string body = "{\"id\":";
  AppendJsonString(head.id, &body);
  body.append(",\"object\":\"list\",\"created\":");
  AppendJsonInt(head.created, &body);
  body.append(",\"model\":");
  AppendJsonString(head.model, &body);
  body.append(",\"data\":[");
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    std::vector<float>& row = result.outputs[i].values;
    const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    if (activation) ToProbabilities(row, engine.problem_type);
    body.append(i > 0 ? "," : "").append("{\"index\":");
    AppendJsonInt(static_cast<int64_t>(i), &body);
    body.append(",\"label\":");
    AppendJsonString(best < engine.labels.size() ? engine.labels[best] : "", &body);
    body.append(",\"probs\":");
    AppendJsonFloats(row, &body);
    body.append(",\"num_classes\":");
    AppendJsonInt(static_cast<int64_t>(row.size()), &body);
    body.push_back('}');
  }
  body.append("],");
  AppendPoolingUsage(result, &body);
  body.push_back('}');
  return body;
}

std::string RerankBody(const std::string& rid, std::string_view weight_version,
                       const RerankForm& form, PoolingResult result) {
  std::string body = "[";
  for (const RankedDocument& document : Ranked(form, result)) {
    if (body.size() > 1) body.push_back(',');
    body.append("{\"score\":");
    AppendJsonFloat(document.score, &body);
    if (!form.documents.empty()) {
      body.append(",\"document\":");
      AppendJsonString(form.documents[document.index], &body);
    }
    body.append(",\"index\":");
    AppendJsonInt(static_cast<int64_t>(document.index), &body);
    body.append(",\"meta_info\":");
    sglang::AppendPoolingMeta(
        {rid, result.outputs[document.index].prompt_tokens, Seconds(result.took), weight_version},
        &body);
    body.push_back('}');
  }
  body.push_back(']');
  return body;
}

std::string CohereRerankBody(const AnswerHead& head, const RerankForm& form, PoolingResult result) {
  std::string body = "{\"id\":";
  AppendJsonString(head.id, &body);
  body.append(",\"model\":");
  AppendJsonString(head.model, &body);
  body.append(",\"results\":[");
  bool first = true;
  for (const RankedDocument& document : Ranked(form, result)) {
    body.append(std::exchange(first, false) ? "" : ",").append("{\"index\":");
    AppendJsonInt(static_cast<int64_t>(document.index), &body);
    body.append(",\"relevance_score\":");
    AppendJsonFloat(document.score, &body);
    if (!form.documents.empty()) {
      body.append(",\"document\":{\"text\":");
      AppendJsonString(form.documents[document.index], &body);
      body.push_back('}');
    }
    body.push_back('}');
  }
  body.append("],");
  AppendPoolingUsage(result, &body);
  body.push_back('}');
  return body;
}

}  // namespace portico::api::openai
