#include <simdjson.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/load/json_fields.h"
#include "tokenizer/load/load.h"
#include "tokenizer/load/load_model.h"
#include "tokenizer/load/mapped_file.h"
#include "tokenizer/load/model_tables.h"

namespace portico::tokenizer {
namespace {

// The members of the file's object, each as JSON text inside `json`.
struct Sections {
  std::string_view version, truncation, padding, added_tokens, normalizer, pre_tokenizer,
      post_processor, decoder, model;
};

// With `model_fields`, the model is told by its members there and not in the sections.
StatusOr<Sections> SplitSections(const simdjson::padded_string_view& json,
                                 ModelFields* model_fields = nullptr) {
  Sections out;
  const std::array<std::pair<std::string_view, std::string_view*>, 9> known = {{
      {"version", &out.version},
      {"truncation", &out.truncation},
      {"padding", &out.padding},
      {"added_tokens", &out.added_tokens},
      {"normalizer", &out.normalizer},
      {"pre_tokenizer", &out.pre_tokenizer},
      {"post_processor", &out.post_processor},
      {"decoder", &out.decoder},
      {"model", &out.model},
  }};
  auto visit = [&](std::string_view key, std::string_view value) {
    for (const auto& [name, section] : known) {
      if (name != key) continue;
      *section = value;
      return OkStatus();
    }
    return Error(StatusCode::kInvalidArgument, "unknown field '" + std::string(key) + "'");
  };
  PORTICO_RETURN_IF_ERROR(ForEachField(json, visit, model_fields));
  return out;
}

StatusOr<Json> ParseSection(std::string_view text, std::string_view name) {
  if (text.empty()) return Json();
  StatusOr<Json> value = Json::Parse(text);
  if (!value.ok()) {
    return Error(StatusCode::kInvalidArgument,
                 std::string(name) + ": " + std::string(MessageOf(value.status())));
  }
  return value;
}

Status ParseAddedTokens(const Json& json, PipelineParts* parts) {
  if (!json.is_array()) {
    return Error(StatusCode::kInvalidArgument, "added_tokens must be a list");
  }
  parts->added_token_ids.emplace();
  for (const Json& item : json.as_array()) {
    AddedToken token;
    PORTICO_ASSIGN_OR_RETURN(const int64_t id, CountField(item, "id"));
    parts->added_token_ids->push_back(id);
    PORTICO_ASSIGN_OR_RETURN(token.content, StringField(item, "content"));
    PORTICO_ASSIGN_OR_RETURN(token.single_word, BoolField(item, "single_word"));
    PORTICO_ASSIGN_OR_RETURN(token.lstrip, BoolField(item, "lstrip"));
    PORTICO_ASSIGN_OR_RETURN(token.rstrip, BoolField(item, "rstrip"));
    PORTICO_ASSIGN_OR_RETURN(token.normalized, BoolField(item, "normalized"));
    PORTICO_ASSIGN_OR_RETURN(token.special, BoolField(item, "special"));
    parts->added_tokens.push_back(std::move(token));
  }
  return OkStatus();
}

// Nothing, or a Sequence of nothing, changes no text.
bool IsNoNormalizer(const Json& json) {
  const Json* list = json.Find("normalizers");
  return json.is_null() || (json.GetString("type") == "Sequence" && list != nullptr &&
                            list->is_array() && list->as_array().empty());
}

// Everything but the model.
StatusOr<PipelineParts> FramePartsOf(const Sections& sections) {
  PipelineParts parts;
  if (!sections.version.empty()) {
    PORTICO_ASSIGN_OR_RETURN(Json version, ParseSection(sections.version, "version"));
    if (!version.is_string() || version.as_string() != "1.0") {
      return Error(StatusCode::kInvalidArgument, "Unknown tokenizer version " + version.Dump());
    }
  }
  PORTICO_ASSIGN_OR_RETURN(Json truncation, ParseSection(sections.truncation, "truncation"));
  PORTICO_ASSIGN_OR_RETURN(parts.truncation, Truncation::FromJson(&truncation));
  PORTICO_ASSIGN_OR_RETURN(Json padding, ParseSection(sections.padding, "padding"));
  PORTICO_ASSIGN_OR_RETURN(parts.padding, Padding::FromJson(&padding));
  if (!sections.added_tokens.empty()) {
    PORTICO_ASSIGN_OR_RETURN(Json added, ParseSection(sections.added_tokens, "added_tokens"));
    PORTICO_RETURN_IF_ERROR(ParseAddedTokens(added, &parts));
  }
  PORTICO_ASSIGN_OR_RETURN(Json normalizer, ParseSection(sections.normalizer, "normalizer"));
  if (!IsNoNormalizer(normalizer)) {
    PORTICO_ASSIGN_OR_RETURN(parts.normalizer, Normalizer::FromJson(normalizer));
  }
  parts.nfc_only = normalizer.GetString("type") == "NFC";
  PORTICO_ASSIGN_OR_RETURN(Json pre, ParseSection(sections.pre_tokenizer, "pre_tokenizer"));
  PORTICO_ASSIGN_OR_RETURN(parts.pre_tokenizer, PreTokenizer::FromJson(pre));
  parts.byte_level = PlanByteLevel(pre);
  PORTICO_ASSIGN_OR_RETURN(Json post, ParseSection(sections.post_processor, "post_processor"));
  PORTICO_ASSIGN_OR_RETURN(parts.post_processor, PostProcessor::FromJson(post));
  PORTICO_ASSIGN_OR_RETURN(Json decoder, ParseSection(sections.decoder, "decoder"));
  PORTICO_ASSIGN_OR_RETURN(parts.decoder, Decoder::FromJson(decoder));
  parts.decode_plan = PlanDecode(decoder);
  return parts;
}

std::string FrameJson(const Sections& sections) {
  std::string out = "{";
  for (const auto& [name, text] :
       {std::pair{"version", sections.version}, std::pair{"truncation", sections.truncation},
        std::pair{"padding", sections.padding}, std::pair{"added_tokens", sections.added_tokens},
        std::pair{"normalizer", sections.normalizer},
        std::pair{"pre_tokenizer", sections.pre_tokenizer},
        std::pair{"post_processor", sections.post_processor},
        std::pair{"decoder", sections.decoder}}) {
    if (text.empty()) continue;
    if (out.size() > 1) out += ',';
    out.append("\"").append(name).append("\":").append(text);
  }
  return out + "}";
}

// Whether Lowercase before it changes nothing, or sentence-transformers leaves it out. With BertNormalizer no character
// of Unicode comes out otherwise.
bool LowersAnyway(const Json& normalizer) {
  const std::string type = normalizer.GetString("type");
  if (type == "Lowercase") return true;
  if (type == "BertNormalizer") return normalizer.GetBool("lowercase", false);
  const Json* list = normalizer.Find("normalizers");
  if (list == nullptr || !list->is_array()) return false;
  return std::any_of(list->as_array().begin(), list->as_array().end(),
                     [](const Json& one) { return one.GetString("type") == "Lowercase"; });
}

}  // namespace

StatusOr<std::string> WithLowercase(std::string_view text) {
  simdjson::padded_string padded(text);
  PORTICO_ASSIGN_OR_RETURN(Sections sections, SplitSections(padded));
  PORTICO_ASSIGN_OR_RETURN(Json normalizer, ParseSection(sections.normalizer, "normalizer"));
  if (LowersAnyway(normalizer)) return std::string(text);
  JsonArray all = {JsonObject{{"type", "Lowercase"}}};
  if (!normalizer.is_null()) all.push_back(std::move(normalizer));
  const std::string changed =
      Json(JsonObject{{"type", "Sequence"}, {"normalizers", std::move(all)}}).Dump();
  sections.normalizer = changed;
  std::string json = FrameJson(sections);
  if (sections.model.empty()) return json;
  json.back() = ',';
  return json.append("\"model\":").append(sections.model).append("}");
}

StatusOr<PipelineParts> PartsFromJson(std::string_view text, std::string* frame) {
  return PartsFromPaddedJson(simdjson::padded_string(text), frame);
}

StatusOr<PipelineParts> PartsFromPaddedJson(std::string_view text, std::string* frame) {
  static_assert(MappedFile::kPadding >= simdjson::SIMDJSON_PADDING);
  ModelFields model;
  PORTICO_ASSIGN_OR_RETURN(Sections sections, SplitSections(Padded(text), &model));
  PORTICO_ASSIGN_OR_RETURN(PipelineParts parts, FramePartsOf(sections));
  if (model.empty()) {
    return Error(StatusCode::kInvalidArgument, "the file has no model, or an empty one");
  }
  PORTICO_ASSIGN_OR_RETURN(parts.model, ModelFromFields(model));
  if (frame != nullptr) *frame = FrameJson(sections);
  return parts;
}

StatusOr<PipelineParts> PartsFromFrame(std::string_view frame, std::unique_ptr<const Model> model) {
  simdjson::padded_string padded(frame);
  PORTICO_ASSIGN_OR_RETURN(Sections sections, SplitSections(padded));
  PORTICO_ASSIGN_OR_RETURN(PipelineParts parts, FramePartsOf(sections));
  parts.model = std::move(model);
  return parts;
}

}  // namespace portico::tokenizer
