#include "api/common/constraint_fields.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace portico::api {
namespace {

using Options = GenerationOptions;

Constraint Of(ConstraintKind kind, std::string text = {}) {
  Constraint constraint;
  constraint.kind = kind;
  constraint.text = std::move(text);
  return constraint;
}

// JSON given as a text or as itself.
Status ReadJson(std::string_view name, ConstraintKind kind, Element value, Options* options) {
  std::string_view text;
  if (!value.get(text)) return SetConstraint(name, Of(kind, std::string(text)), options);
  if (!value.is_object() && !(value.is_bool() && kind == ConstraintKind::kJsonSchema)) {
    return WrongValue(name, "an object or its JSON text", value);
  }
  return SetConstraint(name, Of(kind, simdjson::minify(value)), options);
}

Status ReadGrammarText(std::string_view name, ConstraintKind kind, Element value,
                       Options* options) {
  std::string_view text;
  if (value.get(text)) return WrongValue(name, "a string", value);
  return SetConstraint(name, Of(kind, std::string(text)), options);
}

Status ReadChoice(std::string_view name, Element value, Options* options) {
  simdjson::dom::array list;
  if (value.get(list)) return WrongValue(name, "a list of strings", value);
  if (list.size() == 0) return InvalidArgument(name, fmt::format("{} must not be empty", name));
  for (Element item : list) {
    if (!item.is_string()) return WrongValue(name, "a list of strings", value);
  }
  return SetConstraint(name, Of(ConstraintKind::kChoice, simdjson::minify(value)), options);
}

Status ReadNamedSchema(std::string_view name, Element format, Options* options) {
  Element named;
  if (format["json_schema"].get(named) || !named.is_object()) {
    return InvalidArgument(name,
                           fmt::format("{0}.json_schema must be an object with a schema", name));
  }
  Constraint constraint = Of(ConstraintKind::kJsonSchema);
  Element strict;
  if (!named["strict"].get(strict) && !strict.is_null() && strict.get(constraint.closed)) {
    return InvalidArgument(name, fmt::format("{}.json_schema.strict must be true or false", name));
  }
  Element schema;
  if (named["schema"].get(schema) || schema.is_null()) {
    return InvalidArgument(name, fmt::format("{}.json_schema.schema is missing", name));
  }
  if (!schema.is_object() && !schema.is_bool()) {
    return InvalidArgument(name, fmt::format("{}.json_schema.schema must be an object", name));
  }
  constraint.text = simdjson::minify(schema);
  return SetConstraint(name, std::move(constraint), options);
}

Status ReadResponseFormat(std::string_view name, Element value, Options* options) {
  std::string_view type;
  if (!value.is_object() || value["type"].get(type)) {
    return WrongValue(name, "an object with a type", value);
  }
  if (type == "text") return OkStatus();
  if (type == "json_object") {
    // llama.cpp's form of a schema, which takes {} for any object.
    Element schema;
    simdjson::dom::object members;
    if (!value["schema"].get(schema) && !schema.is_null() &&
        (schema.get(members) || members.size() > 0)) {
      return ReadJson(name, ConstraintKind::kJsonSchema, schema, options);
    }
    return SetConstraint(name, Of(ConstraintKind::kJsonObject), options);
  }
  if (type == "json_schema") return ReadNamedSchema(name, value, options);
  if (type == "structural_tag") {
    return SetConstraint(name, Of(ConstraintKind::kStructuralTag, simdjson::minify(value)),
                         options);
  }
  return InvalidArgument(
      name,
      fmt::format("{}.type must be text, json_object, json_schema or structural_tag, got {:.48}",
                  name, type));
}

Status ReadJsonObjectFlag(std::string_view name, Element value, Options* options) {
  bool wanted = false;
  if (value.get(wanted)) return WrongValue(name, "true or false", value);
  return wanted ? SetConstraint(name, Of(ConstraintKind::kJsonObject), options) : OkStatus();
}

// vLLM's: one constraint, and what modifies it. Its older name, guided_decoding, also has the backend, of which there is
// one here.
Status ReadStructuredOutputs(std::string_view name, Element value, Options* options) {
  if (!value.is_object()) return WrongValue(name, "an object", value);
  bool compact = false;
  bool closed = false;
  for (auto [key, item] : simdjson::dom::object(value)) {
    if (item.is_null()) continue;
    const std::string place = fmt::format("{}.{}", name, key);
    bool flag = false;
    if (key == "json") {
      PORTICO_RETURN_IF_ERROR(ReadJson(name, ConstraintKind::kJsonSchema, item, options));
    } else if (key == "regex") {
      PORTICO_RETURN_IF_ERROR(ReadGrammarText(name, ConstraintKind::kRegex, item, options));
    } else if (key == "choice") {
      PORTICO_RETURN_IF_ERROR(ReadChoice(name, item, options));
    } else if (key == "grammar") {
      PORTICO_RETURN_IF_ERROR(ReadGrammarText(name, ConstraintKind::kEbnf, item, options));
    } else if (key == "structural_tag") {
      PORTICO_RETURN_IF_ERROR(ReadJson(name, ConstraintKind::kStructuralTag, item, options));
    } else if (key == "json_object") {
      if (item.get(flag) || !flag) return WrongValueAt(name, place, "true", item);
      PORTICO_RETURN_IF_ERROR(SetConstraint(name, Of(ConstraintKind::kJsonObject), options));
    } else if (key == "disable_any_whitespace") {
      if (item.get(compact)) return WrongValueAt(name, place, "true or false", item);
    } else if (key == "disable_additional_properties") {
      if (item.get(closed)) return WrongValueAt(name, place, "true or false", item);
    } else if (key == "backend" && name == "guided_decoding") {
      if (!item.is_string()) return WrongValueAt(name, place, "a string", item);
    } else {
      return InvalidArgument(name, fmt::format("{:.80} is not supported", place));
    }
  }
  if (options->constraint == nullptr || options->constraint->field != name) {
    return InvalidArgument(name, fmt::format("{} must hold one of json, regex, choice, grammar, "
                                             "json_object and structural_tag",
                                             name));
  }
  if (compact || closed) {
    auto changed = std::make_shared<Constraint>(*options->constraint);
    changed->compact = compact;
    changed->closed = closed;
    options->constraint = std::move(changed);
  }
  return OkStatus();
}

}  // namespace

Status SetConstraint(std::string_view field, Constraint constraint, GenerationOptions* options) {
  if (options->constraint != nullptr) {
    return InvalidArgument(field, fmt::format("{} and {} cannot both constrain the answer",
                                              options->constraint->field, field));
  }
  const bool may_be_empty =
      constraint.kind == ConstraintKind::kJsonObject || constraint.kind == ConstraintKind::kRegex;
  if (!may_be_empty && constraint.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidArgument(field, fmt::format("{} must not be empty", field));
  }
  constraint.field = field;
  options->constraint = std::make_shared<const Constraint>(std::move(constraint));
  return OkStatus();
}

bool ReadConstraintField(std::string_view name, Element value, GenerationOptions* options,
                         Status* status) {
  if (name == "response_format") {
    *status = ReadResponseFormat(name, value, options);
  } else if (name == "structured_outputs" || name == "guided_decoding") {
    *status = ReadStructuredOutputs(name, value, options);
  } else if (name == "json_schema" || name == "guided_json") {
    *status = ReadJson(name, ConstraintKind::kJsonSchema, value, options);
  } else if (name == "regex" || name == "guided_regex") {
    *status = ReadGrammarText(name, ConstraintKind::kRegex, value, options);
  } else if (name == "ebnf" || name == "guided_grammar") {
    *status = ReadGrammarText(name, ConstraintKind::kEbnf, value, options);
  } else if (name == "guided_json_object") {
    *status = ReadJsonObjectFlag(name, value, options);
  } else if (name == "guided_choice") {
    *status = ReadChoice(name, value, options);
  } else if (name == "structural_tag") {
    *status = ReadJson(name, ConstraintKind::kStructuralTag, value, options);
  } else {
    return false;
  }
  return true;
}

}  // namespace portico::api
