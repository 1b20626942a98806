#include "grammar/tag/styled_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "grammar/schema/document.h"
#include "text/json.h"

namespace portico::grammar {
namespace {

using Words = std::span<const std::string_view>;

constexpr size_t kMaxStyledParts = 4096;

// Keywords that constrain nothing.
constexpr std::string_view kRemarks[] = {"$anchor",     "$comment", "$defs",       "$id",
                                         "$schema",     "default",  "definitions", "deprecated",
                                         "description", "example",  "examples",    "nullable",
                                         "readOnly",    "title",    "writeOnly"};
constexpr std::string_view kValueWords[] = {"const", "enum", "type"};
constexpr std::string_view kArrayWords[] = {"items", "maxItems", "minItems", "prefixItems"};
constexpr std::string_view kObjectWords[] = {"additionalProperties", "properties", "required"};
constexpr std::string_view kStringWords[] = {"maxLength", "minLength", "pattern"};
constexpr std::string_view kNumberWords[] = {"exclusiveMaximum", "exclusiveMinimum", "maximum",
                                             "minimum"};

bool Among(Words words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Words WordsOfType(std::string_view type) {
  if (type == "array") return kArrayWords;
  if (type == "object") return kObjectWords;
  if (type == "string") return kStringWords;
  if (type == "integer" || type == "number") return kNumberWords;
  return {};
}

// The types that a schema names.
std::vector<std::string_view> TypeNames(const Json* schema) {
  std::vector<std::string_view> names;
  const Json* const type = schema->Find("type");
  if (type == nullptr) return names;
  if (type->is_string()) names.push_back(type->as_string());
  if (!type->is_array()) return names;
  for (const Json& one : type->as_array()) {
    if (one.is_string()) names.push_back(one.as_string());
  }
  return names;
}

bool IsOfType(const Json& value, std::string_view type) {
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_int() || value.is_big_int();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_bool();
  return type == "null" && value.is_null();
}

class StyledSchema {
 public:
  explicit StyledSchema(Json root) : document_(std::move(root)) {}

  Status Check() { return Check(document_.root()); }

 private:
  Status Check(const Json* schema) {
    if (!schema->is_object() || !seen_.insert(schema).second) return OkStatus();
    if (seen_.size() > kMaxStyledParts) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("it has more than {} parts", kMaxStyledParts));
    }
    if (schema->Find("$ref") != nullptr) {
      PORTICO_RETURN_IF_ERROR(Alone(schema, "$ref"));
      const std::string reference = schema->GetString("$ref");
      if (!reference.starts_with("#/")) {
        return document_.Refused(schema, "$ref", "only #/ is supported in this style");
      }
      PORTICO_ASSIGN_OR_RETURN(const Json* target, document_.Resolve(schema, reference));
      return Check(target);
    }
    if (const Json* const branches = schema->Find("anyOf")) {
      PORTICO_RETURN_IF_ERROR(Alone(schema, "anyOf"));
      return CheckEach(branches);
    }
    for (const char* const word : {"const", "enum"}) {
      if (schema->Find(word) != nullptr) return CheckValues(schema, word);
    }
    return CheckTyped(schema);
  }

  Status CheckEach(const Json* list) {
    if (list == nullptr || !list->is_array()) return OkStatus();
    for (const Json& one : list->as_array()) PORTICO_RETURN_IF_ERROR(Check(&one));
    return OkStatus();
  }

  // What stands beside `word` would be dropped.
  Status Alone(const Json* schema, std::string_view word) const {
    return Only(schema, Words(&word, 1),
                fmt::format("is not enforced beside {} in this style", word));
  }

  Status Only(const Json* schema, Words words, std::string_view why) const {
    for (const auto& [key, value] : schema->as_object()) {
      if (!Among(kRemarks, key) && !Among(words, key)) return document_.Refused(schema, key, why);
    }
    return OkStatus();
  }

  Status CheckValues(const Json* schema, std::string_view word) const {
    PORTICO_RETURN_IF_ERROR(
        Only(schema, kValueWords, fmt::format("is not enforced beside {} in this style", word)));
    const Json* const values = schema->Find(word);
    if (word == "const" && schema->Find("enum") != nullptr) {
      return document_.Refused(schema, "enum", "is not enforced beside const in this style");
    }
    if (schema->Find("type") == nullptr) return OkStatus();
    const std::vector<std::string_view> types = TypeNames(schema);
    const auto fits = [&types](const Json& value) {
      return std::any_of(types.begin(), types.end(),
                         [&value](std::string_view type) { return IsOfType(value, type); });
    };
    const bool fit = word == "const" || !values->is_array()
                         ? fits(*values)
                         : std::all_of(values->as_array().begin(), values->as_array().end(), fits);
    return fit ? OkStatus()
               : document_.Refused(schema, word,
                                   "values of another type are not left out in this style");
  }

  Status CheckTyped(const Json* schema) {
    std::set<std::string_view> words = {"type"};
    for (const std::string_view type : TypeNames(schema)) {
      const Words own = WordsOfType(type);
      words.insert(own.begin(), own.end());
    }
    for (const auto& [key, value] : schema->as_object()) {
      if (Among(kRemarks, key) || words.contains(key)) continue;
      return document_.Refused(schema, key,
                               words.size() == 1 ? "is not enforced without its type in this style"
                                                 : "is not enforced in this style");
    }
    if (schema->Find("pattern") != nullptr &&
        (schema->Find("minLength") != nullptr || schema->Find("maxLength") != nullptr)) {
      return document_.Refused(schema, "pattern", "is not enforced beside lengths in this style");
    }
    if (const Json* const items = schema->Find("items"); items != nullptr && items->is_array()) {
      return document_.Refused(schema, "items", "a list is not enforced in this style");
    }
    PORTICO_RETURN_IF_ERROR(CheckEach(schema->Find("prefixItems")));
    for (const char* const word : {"items", "additionalProperties"}) {
      if (const Json* const inside = schema->Find(word)) PORTICO_RETURN_IF_ERROR(Check(inside));
    }
    return CheckProperties(schema);
  }

  Status CheckProperties(const Json* schema) {
    const Json* const properties = schema->Find("properties");
    const Json* const required = schema->Find("required");
    if (required != nullptr && required->is_array()) {
      for (const Json& name : required->as_array()) {
        if (!name.is_string() || properties == nullptr ||
            properties->Find(name.as_string()) == nullptr) {
          return document_.Refused(schema, "required",
                                   "names a property that is not declared, in this style");
        }
      }
    }
    if (properties == nullptr || !properties->is_object()) return OkStatus();
    for (const auto& [name, inside] : properties->as_object()) {
      PORTICO_RETURN_IF_ERROR(Check(&inside));
    }
    return OkStatus();
  }

  const SchemaDocument document_;
  std::set<const Json*> seen_;
};

}  // namespace

Status CheckStyledSchema(std::string_view schema) {
  PORTICO_ASSIGN_OR_RETURN(Json root, Json::Parse(schema));
  return StyledSchema(std::move(root)).Check();
}

}  // namespace portico::grammar
