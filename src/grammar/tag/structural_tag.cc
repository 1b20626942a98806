#include "grammar/tag/structural_tag.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "grammar/schema/pattern.h"
#include "grammar/tag/ebnf_literals.h"
#include "grammar/tag/styled_schema.h"
#include "text/json.h"

namespace portico::grammar {
namespace {

constexpr size_t kMaxFormatDepth = 64;  // around a schema
constexpr int kMaxFormats = 16384;

Status InvalidTag(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

Json Object(std::initializer_list<std::pair<std::string, Json>> members) {
  return Json(JsonObject(members));
}

bool HasNul(const Json& value) {
  if (value.is_string()) return value.as_string().find('\0') != std::string::npos;
  return value.is_array() && std::any_of(value.as_array().begin(), value.as_array().end(), HasNul);
}

class Rewriter {
 public:
  Rewriter(const Vocabulary& vocabulary, const SchemaOptions& options)
      : vocabulary_(vocabulary), options_(options) {}

  // `ahead` follows what has the format, as far as it is known.
  Status Format(Json* format, const std::string& where, const CharsAhead& ahead = {}) {
    if (!format->is_object()) return InvalidTag(where + ": must be an object");
    if (++formats_ > kMaxFormats)
      return InvalidTag(fmt::format("more than {} formats", kMaxFormats));
    GiveType(format);
    const std::string type = format->GetString("type");
    if (type == "json_schema") return Schema(format, where);
    if (type == "regex") return Regex(format, where, ahead);
    if (type == "grammar" && HasNulInLiteral(format->GetString("grammar"))) {
      return InvalidTag(where + "/grammar: its literals must not have NUL characters");
    }
    for (auto& [key, value] : format->as_object()) {
      const std::string inside = where + "/" + key;
      // The library's texts end there.
      if (HasNul(value)) return InvalidTag(inside + ": must not have NUL characters");
      // Members that hold formats, alone, in a list or by name; everything else is the library's to check.
      if (key == "content" || key == "format" || (key == "begin" && value.is_object()) ||
          (key == "end" && value.is_object())) {
        if (!value.is_object()) continue;
        const bool ends = key == "content" && type == "tag";
        PORTICO_RETURN_IF_ERROR(
            Format(&value, inside, ends ? TextAhead(format->GetString("end")) : CharsAhead{}));
      } else if (key == "elements" || key == "tags") {
        if (!value.is_array()) continue;
        JsonArray& elements = value.as_array();
        for (size_t i = 0; i < elements.size(); ++i) {
          const Json* const behind =
              type == "sequence" && i + 1 < elements.size() ? &elements[i + 1] : nullptr;
          const bool known = behind != nullptr && behind->is_object() &&
                             behind->GetString("type", "const_string") == "const_string";
          const CharsAhead next = known ? TextAhead(behind->GetString("value")) : CharsAhead{};
          PORTICO_RETURN_IF_ERROR(Element(&elements[i], fmt::format("{}/{}", inside, i), next));
        }
      } else if (key == "rules" && value.is_array()) {
        size_t i = 0;
        for (Json& rule : value.as_array()) {
          if (!rule.is_array()) continue;
          for (Json& part : rule.as_array()) {
            if (part.is_object()) {
              PORTICO_RETURN_IF_ERROR(Format(&part, fmt::format("{}/{}", inside, i)));
            }
          }
          ++i;
        }
      }
      Tokens(type, key, &value);
    }
    return OkStatus();
  }

 private:
  // The library tries every type where there is none, and has a type that stands for a style: a schema must not pass by.
  static void GiveType(Json* format) {
    const Json* const type = format->Find("type");
    if (type != nullptr && *type == Json("qwen_xml_parameter")) {
      format->Set("type", Json("json_schema"));
      format->Set("style", Json("qwen_xml"));
    }
    if (type != nullptr) return;
    if (format->Find("begin") != nullptr) {
      format->Set("type", Json("tag"));
    } else if (format->Find("value") != nullptr) {
      format->Set("type", Json("const_string"));
    } else if (format->Find("json_schema") != nullptr) {
      format->Set("type", Json("json_schema"));
    }
  }

  // As a regular expression alone: the library skips anchors and escapes that it does not know.
  Status Regex(Json* format, const std::string& where, const CharsAhead& ahead) {
    const Json* const pattern = format->Find("pattern");
    if (pattern == nullptr || !pattern->is_string()) {
      return InvalidTag(where + ": pattern must be a string");
    }
    auto ebnf = RegexToEbnf(pattern->as_string(), ahead);
    if (!ebnf.ok())
      return InvalidTag(fmt::format("{}/pattern: {}", where, MessageOf(ebnf.status())));
    *format = Object({{"type", Json("grammar")}, {"grammar", Json(*std::move(ebnf))}});
    return OkStatus();
  }

  Status Element(Json* element, const std::string& where, const CharsAhead& ahead) {
    if (!element->is_object()) return OkStatus();
    // A tag in a list of tags may leave its type out.
    return Format(element, where, ahead);
  }

  Status Schema(Json* format, const std::string& where) {
    const Json* const schema = format->Find("json_schema");
    if (schema == nullptr) return InvalidTag(where + ": json_schema is missing");
    const std::string style = format->GetString("style", "json");
    // Ours: `closed` and `escape_less` as SchemaOptions, `loose`: a schema that cannot be enforced stands for any value of its
    // type, and `label`: what errors call it.
    SchemaOptions options = options_;
    options.closed_objects |= format->GetBool("closed", false);
    options.escape_less = format->GetBool("escape_less", false);
    const bool loose = format->GetBool("loose", false);
    auto ebnf = JsonSchemaToEbnf(schema->Dump(), options);
    if (!ebnf.ok() && loose) {
      const Json* const type = schema->Find("type");
      Json any = type == nullptr ? Json(true) : Object({{"type", *type}});
      ebnf = JsonSchemaToEbnf(any.Dump(), options);
      if (!ebnf.ok()) ebnf = JsonSchemaToEbnf((any = Json(true)).Dump(), options);
      format->Set("json_schema", std::move(any));
    }
    const auto named = [&](const Status& status) {
      return fmt::format("{}: {}", format->GetString("label", where + "/json_schema"),
                         MessageOf(status));
    };
    if (!ebnf.ok()) return InvalidTag(named(ebnf.status()));
    // Other styles are written by the library, which takes the schema itself.
    if (style != "json") {
      if (loose) return OkStatus();
      const Status enforced = CheckStyledSchema(*schema);
      return enforced.ok() ? enforced : InvalidTag(named(enforced));
    }
    *format = Object({{"type", Json("grammar")}, {"grammar", Json(*std::move(ebnf))}});
    return OkStatus();
  }

  // Names of special tokens: the library knows them by their ids only.
  void Tokens(std::string_view type, std::string_view key, Json* value) const {
    const bool one = key == "token" && type == "token";
    const bool many = key == "exclude_tokens" || key == "trigger_tokens";
    const auto resolve = [&](Json* name) {
      if (!name->is_string()) return;
      const auto found =
          std::find_if(vocabulary_.special.begin(), vocabulary_.special.end(), [&](TokenId id) {
            return std::string_view(vocabulary_.texts[id]).substr(1) == name->as_string();
          });
      if (found != vocabulary_.special.end()) *name = Json(static_cast<int64_t>(*found));
    };
    if (one) return resolve(value);
    if (!many || !value->is_array()) return;
    for (Json& name : value->as_array()) resolve(&name);
  }

  const Vocabulary& vocabulary_;
  const SchemaOptions& options_;
  int formats_ = 0;
};

// {"structures": [{"begin", "schema", "end"}], "triggers": […]}.
StatusOr<Json> FromOlderForm(const Json& tag) {
  const Json* const structures = tag.Find("structures");
  const Json* const triggers = tag.Find("triggers");
  if (structures == nullptr || !structures->is_array() || triggers == nullptr ||
      !triggers->is_array() || structures->as_array().empty()) {
    return InvalidTag("it needs format, or structures and triggers");
  }
  JsonArray tags;
  for (const Json& structure : structures->as_array()) {
    const Json* const begin = structure.Find("begin");
    const Json* const end = structure.Find("end");
    if (begin == nullptr || !begin->is_string() || end == nullptr || !end->is_string()) {
      return InvalidTag("structures: begin and end must be strings");
    }
    const Json* const schema = structure.Find("schema");
    Json content =
        Object({{"type", Json("json_schema")},
                {"json_schema", schema == nullptr || schema->is_null() ? Json(true) : *schema}});
    tags.push_back(Object({{"type", Json("tag")},
                           {"begin", *begin},
                           {"content", std::move(content)},
                           {"end", *end}}));
  }
  return Object(
      {{"type", Json("triggered_tags")}, {"triggers", *triggers}, {"tags", Json(std::move(tags))}});
}

}  // namespace

StatusOr<std::string> RewriteStructuralTag(std::string_view text, const Vocabulary& vocabulary,
                                           const SchemaOptions& options) {
  PORTICO_ASSIGN_OR_RETURN(
      Json tag,
      Json::Parse(text, Json::Limits{.max_depth = kMaxFormatDepth + options.max_json_depth()}));
  if (!tag.is_object()) return InvalidTag("it must be an object");
  Json format;
  if (const Json* const given = tag.Find("format")) {
    format = *given;
  } else {
    PORTICO_ASSIGN_OR_RETURN(format, FromOlderForm(tag));
  }
  PORTICO_RETURN_IF_ERROR(Rewriter(vocabulary, options).Format(&format, "format"));
  return Object({{"type", Json("structural_tag")}, {"format", std::move(format)}}).Dump();
}

}  // namespace portico::grammar
