#include "api/sglang/pooling_meta.h"

#include "text/json_writer.h"

namespace portico::api::sglang {

std::vector<std::pair<std::string_view, std::string>> PoolingMetaEntries(const PoolingMeta& meta) {
  std::string id;
  AppendJsonString(meta.id, &id);
  std::string seconds;
  AppendJsonDouble(meta.e2e_seconds, &seconds);
  std::string version;
  AppendJsonString(meta.weight_version, &version);
  return {
      {"id", std::move(id)},
      // SGLang ends them by a length of 0 tokens.
      {"finish_reason", "{\"type\":\"length\",\"length\":0}"},
      {"prompt_tokens", std::to_string(meta.prompt_tokens)},
      {"num_retractions", "0"},
      {"weight_version", std::move(version)},
      {"e2e_latency", std::move(seconds)},
  };
}

void AppendPoolingMeta(const PoolingMeta& meta, std::string* out) {
  JsonWriter w(out);
  w.BeginObject();
  for (const auto& [key, value] : PoolingMetaEntries(meta)) w.Key(key).Raw(value);
  w.EndObject();
}

void AppendSparseVector(const SparseVector& vector, std::string* out) {
  out->push_back('{');
  for (const auto& [index, weight] : vector) {
    if (out->back() != '{') out->push_back(',');
    out->push_back('"');
    AppendJsonInt(index, out);
    out->append("\":");
    AppendJsonFloat(weight, out);
  }
  out->push_back('}');
}

std::string PooledBody(const std::optional<VectorForm>& form, bool is_list,
                       std::string_view weight_version, PoolingResult result) {
  std::string body;
  if (is_list) body.push_back('[');
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    std::vector<float>& values = result.outputs[i].values;
    body.append(i > 0 ? "," : "").append("{\"embedding\":");
    if (const auto& sparse = result.outputs[i].sparse; sparse) {
      AppendSparseVector(*sparse, &body);
    } else {
      if (form) form->Apply(&values);
      AppendJsonFloats(values, &body);
    }
    body.append(",\"meta_info\":");
    AppendPoolingMeta(
        {result.rids[i], result.outputs[i].prompt_tokens, Seconds(result.took), weight_version},
        &body);
    body.push_back('}');
  }
  if (is_list) body.push_back(']');
  return body;
}

}  // namespace portico::api::sglang
