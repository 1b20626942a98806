#include "api/openai/embedding/decode_embedding.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "api/common/field_reader.h"
#include "api/common/prompt_field.h"
#include "api/common/refused_fields.h"

namespace portico::api::openai {
namespace {

// The service checks the number of texts against the flag.
constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

template <PromptForms kForms>
Status ReadInputs(std::string_view name, Element value, EmbeddingRequest* request) {
  if (!request->inputs.empty()) {
    return InvalidArgument(
        name, fmt::format("give either {} or {}, not both", request->input_field, name));
  }
  PORTICO_RETURN_IF_ERROR(
      ReadPrompts(name, value, kForms, &request->inputs, &request->is_list, kAnyNumber));
  request->input_field = name;
  for (size_t i = 0; i < request->inputs.size(); ++i) {
    const CompletionRequest::Prompt& input = request->inputs[i];
    if (input.is_ids || !input.text.empty()) continue;
    return InvalidArgument(name, request->is_list
                                     ? fmt::format("{}[{}] must not be an empty string", name, i)
                                     : fmt::format("{} must not be an empty string", name));
  }
  return OkStatus();
}

Status ReadTypeList(std::string_view name, Element list, std::vector<uint8_t>* types) {
  for (Element item : simdjson::dom::array(list)) {
    int32_t type = 0;
    PORTICO_RETURN_IF_ERROR(ReadInt32(name, item, {0, 255}, &type));
    types->push_back(static_cast<uint8_t>(type));
  }
  return OkStatus();
}

Status ReadTokenTypes(std::string_view name, Element value, EmbeddingRequest* request) {
  constexpr std::string_view kExpected = "a list of token types or a list of lists of them";
  simdjson::dom::array items;
  if (value.get(items) || items.size() == 0) return WrongValue(name, kExpected, value);
  if (!(*items.begin()).is_array()) {
    return ReadTypeList(name, value, &request->token_types.emplace_back());
  }
  for (Element item : items) {
    if (!item.is_array()) return WrongValue(name, kExpected, value);
    PORTICO_RETURN_IF_ERROR(ReadTypeList(name, item, &request->token_types.emplace_back()));
  }
  return OkStatus();
}

Status ReadEncodingFormat(std::string_view name, Element value, EmbeddingRequest* request) {
  std::string_view format;
  if (value.get(format) || (format != "float" && format != "base64")) {
    return WrongValue(name, "\"float\" or \"base64\"", value);
  }
  request->base64 = format == "base64";
  return OkStatus();
}

template <typename Request, auto kMember>
Status ReadCount(std::string_view name, Element value, Request* request) {
  return ReadInt32(name, value, {1, kMaxInt32}, &(request->*kMember));
}

Status ReadRids(std::string_view name, Element value, EmbeddingRequest* request) {
  return ReadOneOrEach(name, value, &request->rid, ReadRequestName);
}

Status ReadAdapter(std::string_view name, Element value, std::string* adapter) {
  return value.is_null() ? OkStatus() : ReadString(name, value, adapter);
}

Status ReadAdapters(std::string_view name, Element value, EmbeddingRequest* request) {
  return ReadOneOrEach(name, value, &request->lora_path, ReadAdapter);
}

Status ReadRank(std::string_view name, Element value, EmbeddingRequest* request) {
  request->rank_field = name;
  return ReadInt32(name, value, {0, kMaxInt32}, &request->data_parallel_rank);
}

template <typename Request>
Status CheckString(std::string_view name, Element value, Request*) {
  std::string text;
  return ReadString(name, value, &text);
}

Status ReadPromptName(std::string_view name, Element value, EmbeddingRequest* request) {
  return ReadString(name, value, &request->prompt_name.emplace());
}

using Embedding = EmbeddingRequest;
using Rerank = RerankRequest;

constexpr FieldReader<Embedding> kEmbedding[] = {
    {"data_parallel_rank", ReadRank},
    {"dimensions", ReadCount<Embedding, &Embedding::dimensions>},
    {"encoding_format", ReadEncodingFormat},
    {"input", ReadInputs<PromptForms::kAny>},
    {"lora_path", ReadAdapters},
    {"model", ReadText<Embedding, &Embedding::model>},
    {"normalize", ReadFlag<Embedding, &Embedding::normalize>},
    {"prompt_name", ReadPromptName},
    {"rid", ReadRids},
    {"routed_dp_rank", ReadRank},
    {"token_type_ids", ReadTokenTypes},
    {"truncate_prompt_tokens", ReadTruncateField<Embedding>},
    {"user", CheckString<Embedding>},
};
static_assert(IsSortedByName(kEmbedding));

constexpr FieldReader<Embedding> kClassify[] = {
    {"data_parallel_rank", ReadRank},
    {"input", ReadInputs<PromptForms::kAny>},
    {"model", ReadText<Embedding, &Embedding::model>},
    {"rid", ReadRids},
    {"routed_dp_rank", ReadRank},
    {"token_type_ids", ReadTokenTypes},
    {"truncate_prompt_tokens", ReadTruncateField<Embedding>},
    {"use_activation", ReadFlag<Embedding, &Embedding::activation>},
    {"user", CheckString<Embedding>},
};
static_assert(IsSortedByName(kClassify));

constexpr FieldReader<Embedding> kEncode[] = {
    {"data_parallel_rank", ReadRank},
    {"dimensions", ReadCount<Embedding, &Embedding::dimensions>},
    {"input_ids", ReadInputs<PromptForms::kIds>},
    {"lora_path", ReadAdapters},
    {"model", ReadText<Embedding, &Embedding::model>},
    {"normalize", ReadFlag<Embedding, &Embedding::normalize>},
    {"prompt_name", ReadPromptName},
    {"rid", ReadRids},
    {"routed_dp_rank", ReadRank},
    {"text", ReadInputs<PromptForms::kTexts>},
    {"token_type_ids", ReadTokenTypes},
    {"truncate_prompt_tokens", ReadTruncateField<Embedding>},
};
static_assert(IsSortedByName(kEncode));

constexpr FieldReader<Embedding> kNativeClassify[] = {
    {"data_parallel_rank", ReadRank},
    {"input", ReadInputs<PromptForms::kAny>},
    {"input_ids", ReadInputs<PromptForms::kIds>},
    {"lora_path", ReadAdapters},
    {"model", ReadText<Embedding, &Embedding::model>},
    {"rid", ReadRids},
    {"routed_dp_rank", ReadRank},
    {"text", ReadInputs<PromptForms::kTexts>},
    {"token_type_ids", ReadTokenTypes},
    {"truncate_prompt_tokens", ReadTruncateField<Embedding>},
    {"use_activation", ReadFlag<Embedding, &Embedding::activation>},
};
static_assert(IsSortedByName(kNativeClassify));

Status ReadDocuments(std::string_view name, Element value, RerankRequest* request) {
  simdjson::dom::array items;
  if (value.get(items)) return WrongValue(name, "a list of strings", value);
  if (items.size() == 0) {
    return InvalidArgument(name, fmt::format("{} must not be an empty list", name));
  }
  for (Element item : items) {
    Element text = item;
    if (item.is_object() && item["text"].get(text)) text = item;
    std::string_view document;
    if (text.get(document)) {
      return WrongValueAt(name, fmt::format("{}[{}]", name, request->documents.size()),
                          "a string, or an object with a text", item);
    }
    request->documents.emplace_back(document);
  }
  return OkStatus();
}

constexpr FieldReader<Rerank> kRerank[] = {
    {"documents", ReadDocuments},
    {"instruct", ReadText<Rerank, &Rerank::instruction>},
    {"instruction", ReadText<Rerank, &Rerank::instruction>},
    {"model", ReadText<Rerank, &Rerank::model>},
    {"query", ReadText<Rerank, &Rerank::query>},
    {"return_documents", ReadFlag<Rerank, &Rerank::return_documents>},
    {"rid", ReadName<Rerank, &Rerank::rid>},
    {"top_n", ReadCount<Rerank, &Rerank::top_n>},
    {"truncate_prompt_tokens", ReadTruncateField<Rerank>},
    {"use_activation", ReadFlag<Rerank, &Rerank::activation>},
    {"user", CheckString<Rerank>},
};
static_assert(IsSortedByName(kRerank));

// Fields of these requests alone that cannot be honoured, or have no effect on the answer.
constexpr RefusedField kRefused[] = {
    {"add_special_tokens", "true"},
    {"audio_data", "", kPerPrompt},
    {"background", "false"},
    {"embed_override_token_id", ""},
    {"embed_overrides", ""},
    {"external_trace_header", "*"},
    {"image_data", "", kPerPrompt},
    {"is_cross_encoder_request", "false"},
    {"log_metrics", "*"},
    {"max_chunks_per_doc", ""},
    {"max_tokens_per_doc", ""},
    {"messages", ""},
    {"multi_item_delimiter_indices", ""},
    {"rank_fields", ""},
    {"received_time", "*"},
    {"return_pooled_hidden_states", "false"},
    {"routing_key", "*"},
    {"sampling_params", "*"},
    {"video_data", "", kPerPrompt},
};
static_assert(IsSortedByName(kRefused));

template <typename Request, size_t kSize>
StatusOr<Request> Read(const std::string& body, simdjson::dom::parser& parser,
                       const FieldReader<Request> (&table)[kSize]) {
  Request request;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, table, &request, [](auto name, auto value) {
    Status status;
    if (IsRefusedField(kRefused, name, value, &status)) return status;
    return RefuseOrNote(name, value, nullptr);
  }));
  return request;
}

template <size_t kSize>
StatusOr<EmbeddingRequest> ReadInputsOf(const std::string& body, simdjson::dom::parser& parser,
                                        const FieldReader<EmbeddingRequest> (&table)[kSize],
                                        std::string_view field, std::string_view needed) {
  PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, Read(body, parser, table));
  if (request.inputs.empty()) return InvalidArgument(field, std::string(needed));
  return request;
}

}  // namespace

Status ReadTruncate(std::string_view name, Element value, std::optional<int32_t>* truncate) {
  int64_t tokens = 0;
  PORTICO_RETURN_IF_ERROR(ReadInt64(name, value, {kTruncateToLimit, kMaxInt32}, &tokens));
  if (tokens == 0) return WrongValue(name, "-1 or an integer of at least 1", value);
  *truncate = static_cast<int32_t>(tokens);
  return OkStatus();
}

StatusOr<EmbeddingRequest> DecodeEmbedding(const std::string& body, simdjson::dom::parser& parser) {
  return ReadInputsOf(body, parser, kEmbedding, "input", "input is required");
}

StatusOr<EmbeddingRequest> DecodeClassify(const std::string& body, simdjson::dom::parser& parser) {
  return ReadInputsOf(body, parser, kClassify, "input", "input is required");
}

StatusOr<EmbeddingRequest> DecodeEncode(const std::string& body, simdjson::dom::parser& parser) {
  return ReadInputsOf(body, parser, kEncode, "text", "text or input_ids is required");
}

StatusOr<EmbeddingRequest> DecodeNativeClassify(const std::string& body,
                                                simdjson::dom::parser& parser) {
  return ReadInputsOf(body, parser, kNativeClassify, "text", "text or input_ids is required");
}

StatusOr<RerankRequest> DecodeRerank(const std::string& body, simdjson::dom::parser& parser) {
  PORTICO_ASSIGN_OR_RETURN(RerankRequest request, Read(body, parser, kRerank));
  if (request.query.empty()) return InvalidArgument("query", "query is required");
  if (request.documents.empty()) return InvalidArgument("documents", "documents is required");
  return request;
}

}  // namespace portico::api::openai
