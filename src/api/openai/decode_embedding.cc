#include "api/openai/decode_embedding.h"

#include <utility>

#include "api/openai/field_reader.h"
#include "api/openai/prompt_field.h"
#include "api/openai/refused_fields.h"
#include "message/sampling_ranges.h"

namespace portico::api::openai {
namespace {

template <PromptForms kForms>
Status ReadInputs(std::string_view name, Element value, EmbeddingRequest* request) {
  if (!request->inputs.empty()) {
    return InvalidArgument(name, "give either text or input_ids, not both");
  }
  PORTICO_RETURN_IF_ERROR(ReadPrompts(name, value, kForms, &request->inputs, &request->is_list));
  request->input_field = name;
  for (const CompletionRequest::Prompt& input : request->inputs) {
    if (input.is_ids || !input.text.empty()) continue;
    return InvalidArgument(name, std::string(name) + " must not hold an empty string");
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

template <typename Request>
Status ReadModel(std::string_view name, Element value, Request* request) {
  return ReadString(name, value, &request->model);
}

template <typename Request>
Status ReadRid(std::string_view name, Element value, Request* request) {
  return ReadRequestName(name, value, &request->rid);
}

Status CheckUser(std::string_view name, Element value, EmbeddingRequest*) {
  std::string user;
  return ReadString(name, value, &user);
}

constexpr FieldReader<EmbeddingRequest> kEmbedding[] = {
    {"dimensions", ReadCount<EmbeddingRequest, &EmbeddingRequest::dimensions>},
    {"encoding_format", ReadEncodingFormat},
    {"input", ReadInputs<PromptForms::kAny>},
    {"model", ReadModel},
    {"rid", ReadRid},
    {"user", CheckUser},
};
static_assert(IsSortedByName(kEmbedding));

constexpr FieldReader<EmbeddingRequest> kEncode[] = {
    {"dimensions", ReadCount<EmbeddingRequest, &EmbeddingRequest::dimensions>},
    {"input_ids", ReadInputs<PromptForms::kIds>},
    {"model", ReadModel},
    {"rid", ReadRid},
    {"text", ReadInputs<PromptForms::kTexts>},
};
static_assert(IsSortedByName(kEncode));

Status ReadQuery(std::string_view name, Element value, RerankRequest* request) {
  PORTICO_RETURN_IF_ERROR(ReadString(name, value, &request->query));
  if (!request->query.empty()) return OkStatus();
  return InvalidArgument(name, "query must not be empty");
}

Status ReadDocuments(std::string_view name, Element value, RerankRequest* request) {
  std::vector<CompletionRequest::Prompt> texts;
  bool is_list = false;
  if (!value.is_array()) return WrongValue(name, "a list of strings", value);
  PORTICO_RETURN_IF_ERROR(ReadPrompts(name, value, PromptForms::kTexts, &texts, &is_list));
  for (CompletionRequest::Prompt& text : texts) {
    request->documents.push_back(std::move(text.text));
  }
  return OkStatus();
}

Status ReadReturnDocuments(std::string_view name, Element value, RerankRequest* request) {
  return ReadBool(name, value, &request->return_documents);
}

Status ReadInstruct(std::string_view name, Element value, RerankRequest* request) {
  return ReadString(name, value, &request->instruct);
}

constexpr FieldReader<RerankRequest> kRerank[] = {
    {"documents", ReadDocuments},
    {"instruct", ReadInstruct},
    {"model", ReadModel},
    {"query", ReadQuery},
    {"return_documents", ReadReturnDocuments},
    {"rid", ReadRid},
    {"top_n", ReadCount<RerankRequest, &RerankRequest::top_n>},
};
static_assert(IsSortedByName(kRerank));

template <typename Request, size_t kSize>
StatusOr<Request> Read(const std::string& body, simdjson::dom::parser& parser,
                       const FieldReader<Request> (&table)[kSize]) {
  Request request;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, table, &request, [](auto name, auto value) {
    return RefuseOrNote(name, value, nullptr);
  }));
  return request;
}

}  // namespace

StatusOr<EmbeddingRequest> DecodeEmbedding(const std::string& body, simdjson::dom::parser& parser) {
  PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, Read(body, parser, kEmbedding));
  if (request.inputs.empty()) return InvalidArgument("input", "input is required");
  return request;
}

StatusOr<EmbeddingRequest> DecodeEncode(const std::string& body, simdjson::dom::parser& parser) {
  PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, Read(body, parser, kEncode));
  if (request.inputs.empty()) return InvalidArgument("text", "text or input_ids is required");
  return request;
}

StatusOr<RerankRequest> DecodeRerank(const std::string& body, simdjson::dom::parser& parser) {
  PORTICO_ASSIGN_OR_RETURN(RerankRequest request, Read(body, parser, kRerank));
  if (request.query.empty()) return InvalidArgument("query", "query is required");
  if (request.documents.empty()) return InvalidArgument("documents", "documents is required");
  return request;
}

}  // namespace portico::api::openai
