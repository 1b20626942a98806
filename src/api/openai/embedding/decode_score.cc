#include "api/openai/embedding/decode_score.h"

#include <utility>

#include "api/common/field_reader.h"
#include "api/common/prompt_field.h"
#include "api/common/refused_fields.h"
#include "api/openai/embedding/decode_embedding.h"

namespace portico::api::openai {
namespace {

struct ScoreDraft : ScoreRequest {
  bool has_query = false;
  bool has_items = false;
};

Status ReadQuery(std::string_view name, Element value, ScoreDraft* request) {
  std::vector<CompletionRequest::Prompt> prompts;
  bool is_list = false;
  Status status = ReadPrompts(name, value, PromptForms::kAny, &prompts, &is_list);
  if (!status.ok() || is_list) return WrongValue(name, "a string or a list of token ids", value);
  request->query = std::move(prompts[0]);
  request->has_query = true;
  return OkStatus();
}

// None have no scores, which is an answer too, as SGLang's is.
Status ReadItems(std::string_view name, Element value, ScoreDraft* request) {
  request->has_items = true;
  simdjson::dom::array list;
  if (!value.get(list) && list.size() == 0) return OkStatus();
  bool is_list = false;
  PORTICO_RETURN_IF_ERROR(ReadPrompts(name, value, PromptForms::kAny, &request->items, &is_list));
  if (is_list || !request->items[0].is_ids) return OkStatus();
  return WrongValue(name, "a string, a list of strings or a list of lists of token ids", value);
}

Status ReadLabels(std::string_view name, Element value, ScoreDraft* request) {
  PORTICO_RETURN_IF_ERROR(ExpectList(name, value));
  PORTICO_RETURN_IF_ERROR(
      CheckMembers(name, simdjson::dom::array(value).size(), kMaxLogprobIds, "token ids"));
  return ReadTokenIds(name, std::string(name), value, &request->label_token_ids);
}

constexpr FieldReader<ScoreDraft> kScore[] = {
    {"apply_softmax", ReadFlag<ScoreDraft, &ScoreDraft::apply_softmax>},
    {"item_first", ReadFlag<ScoreDraft, &ScoreDraft::item_first>},
    {"items", ReadItems, /*is_long=*/true},
    {"label_token_ids", ReadLabels},
    {"model", ReadText<ScoreDraft, &ScoreDraft::model>},
    {"query", ReadQuery, /*is_long=*/true},
    {"rid", ReadName<ScoreDraft, &ScoreDraft::rid>},
    {"truncate_prompt_tokens", ReadTruncateField<ScoreDraft>},
};
static_assert(IsSortedByName(kScore));

Status CheckScore(const ScoreDraft& request) {
  const std::pair<std::string_view, bool> needed[] = {
      {"query", request.has_query},
      {"items", request.has_items},
  };
  for (const auto& [field, given] : needed) {
    if (!given) return InvalidArgument(field, std::string(field) + " is required");
  }
  if (request.items.empty() || request.items[0].is_ids == request.query.is_ids) return OkStatus();
  return InvalidArgument("items", "query and items must both be texts, or both be token ids");
}

}  // namespace

Status CheckLongScore(const std::string& body, simdjson::dom::parser& parser,
                      const ScoreCheck& check) {
  ScoreDraft draft;
  PORTICO_ASSIGN_OR_RETURN(
      const auto left_out,
      ReadShortFields(body, parser, kScore, &draft, [](auto, auto) { return OkStatus(); }));
  if (!left_out) return OkStatus();
  size_t query_ids = 0;
  for (const LeftOutMember& member : *left_out) {
    if (member.name == "query" && member.kind == '[') query_ids = member.items;
  }
  return check(draft, query_ids, CountPrompts(*left_out, "items"));
}

StatusOr<ScoreRequest> DecodeScore(const std::string& body, simdjson::dom::parser& parser,
                                   std::vector<std::string>* unknown_fields) {
  ScoreDraft draft;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, kScore, &draft, [&](auto name, auto value) {
    return RefuseOrNote(name, value, unknown_fields);
  }));
  PORTICO_RETURN_IF_ERROR(CheckScore(draft));
  return ScoreRequest(std::move(draft));
}

}  // namespace portico::api::openai
