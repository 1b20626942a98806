#include "grammar/tag/styled_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "grammar/schema/document.h"
#include "grammar/schema/keywords.h"

namespace portico::grammar {
namespace {

// They bound the recursion, which follows references.
constexpr size_t kMaxStyledParts = 4096;

struct StyledKeyword {
  std::string_view name;
  uint8_t types;  // of the values that it is about
  bool enforced;
};

// All that constrain.
constexpr StyledKeyword kStyledKeywords[] = {
    {"$ref", kAnyType, false},
    {"additionalItems", kArray, false},
    {"additionalProperties", kObject, true},
    {"allOf", kAnyType, false},
    {"anyOf", kAnyType, false},
    {"const", kAnyType, false},
    {"contains", kArray, false},
    {"dependencies", kObject, false},
    {"dependentRequired", kObject, false},
    {"dependentSchemas", kObject, false},
    {"enum", kAnyType, false},
    {"exclusiveMaximum", kNumber, true},
    {"exclusiveMinimum", kNumber, true},
    {"format", kString, false},
    {"if", kAnyType, false},
    {"items", kArray, true},
    {"maxContains", kArray, false},
    {"maxItems", kArray, true},
    {"maxLength", kString, true},
    {"maxProperties", kObject, false},
    {"maximum", kNumber, true},
    {"minContains", kArray, false},
    {"minItems", kArray, true},
    {"minLength", kString, true},
    {"minProperties", kObject, false},
    {"minimum", kNumber, true},
    {"multipleOf", kNumber, false},
    {"not", kAnyType, false},
    {"oneOf", kAnyType, false},
    {"pattern", kString, true},
    {"patternProperties", kObject, false},
    {"prefixItems", kArray, true},
    {"properties", kObject, true},
    {"propertyNames", kObject, false},
    {"required", kObject, true},
    {"type", kAnyType, true},
    {"unevaluatedItems", kArray, false},
    {"unevaluatedProperties", kObject, false},
    {"uniqueItems", kArray, false},
};

// Null: it says nothing of values of these types.
const StyledKeyword* FindStyledKeyword(std::string_view name, const Json& value, uint8_t types) {
  const auto* const found =
      std::find_if(std::begin(kStyledKeywords), std::end(kStyledKeywords),
                   [name](const StyledKeyword& keyword) { return keyword.name == name; });
  if (found == std::end(kStyledKeywords) || (found->types & types) == 0) return nullptr;
  return name == "uniqueItems" && value == Json(false) ? nullptr : found;
}

// Values and names stand as text between tags, without escapes: what looks like a tag would end them, and readers take
// line ends off.
bool LooksLikeTag(std::string_view text) {
  for (size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    if (at + 1 == text.size()) return false;
    const auto next = static_cast<unsigned char>(text[at + 1]);
    if (absl::ascii_isalpha(next) || next == '/' || next == '!' || next >= 0x80) return true;
  }
  return false;
}

bool CanBeValue(const Json& value) {
  if (value.is_array()) {
    return std::all_of(value.as_array().begin(), value.as_array().end(), CanBeValue);
  }
  if (value.is_object()) {
    return std::all_of(value.as_object().begin(), value.as_object().end(), [](const auto& member) {
      return !LooksLikeTag(member.first) && CanBeValue(member.second);
    });
  }
  if (!value.is_string()) return true;
  const std::string& text = value.as_string();
  constexpr std::string_view kLineEnds = "\r\n";
  return text.empty() || (!LooksLikeTag(text) && kLineEnds.find(text.front()) == text.npos &&
                          kLineEnds.find(text.back()) == text.npos);
}

bool CanBeName(std::string_view name) {
  return !name.empty() && !absl::ascii_isspace(static_cast<unsigned char>(name.front())) &&
         !absl::ascii_isspace(static_cast<unsigned char>(name.back())) &&
         name.find_first_of("<>\"\r\n") == name.npos;
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
    const Json* const type = schema->Find("type");
    if (type != nullptr && type->is_array() && type->as_array().empty()) {
      return document_.Refused(schema, "type", "an empty list is not enforced in this style");
    }
    if (schema->Find("$ref") != nullptr) {
      const std::string reference = schema->GetString("$ref");
      if (reference != "#" && !reference.starts_with("#/")) {
        return document_.Refused(schema, "$ref", "only #/ is supported in this style");
      }
      PORTICO_ASSIGN_OR_RETURN(const Json* target, document_.Resolve(schema, reference));
      return CheckInstead(schema, "$ref", {target});
    }
    for (const char* const word : {"const", "enum"}) {
      if (schema->Find(word) != nullptr) return CheckValues(schema, word);
    }
    for (const char* const word : {"anyOf", "allOf"}) {
      const Json* const parts = schema->Find(word);
      if (parts == nullptr || !parts->is_array()) continue;
      // The library takes several of allOf for anything.
      if (word == std::string_view("allOf") && parts->as_array().size() != 1) continue;
      std::vector<const Json*> meant;
      for (const Json& part : parts->as_array()) meant.push_back(&part);
      return CheckInstead(schema, word, meant);
    }
    return CheckTyped(schema);
  }

  // The library looks at `word` alone, whose schemas are `meant`: a type beside it has to be theirs.
  Status CheckInstead(const Json* schema, std::string_view word,
                      const std::vector<const Json*>& meant) {
    PORTICO_ASSIGN_OR_RETURN(const uint8_t types, TypesOf(document_, schema));
    uint8_t all = 0;
    for (const Json* const part : meant) {
      PORTICO_ASSIGN_OR_RETURN(const uint8_t own, TypesOf(document_, part));
      all |= own;
    }
    for (const auto& [key, value] : schema->as_object()) {
      if (key == word || FindStyledKeyword(key, value, types) == nullptr) continue;
      if (key == "type" && (all & ~types) == 0) continue;
      return document_.Refused(schema, key,
                               fmt::format("is not enforced beside {} in this style", word));
    }
    for (const Json* const part : meant) PORTICO_RETURN_IF_ERROR(Check(part));
    return OkStatus();
  }

  Status CheckValues(const Json* schema, std::string_view word) const {
    PORTICO_ASSIGN_OR_RETURN(const uint8_t types, TypesOf(document_, schema));
    for (const auto& [key, value] : schema->as_object()) {
      if (key == word || key == "type" || FindStyledKeyword(key, value, types) == nullptr) continue;
      return document_.Refused(schema, key,
                               fmt::format("is not enforced beside {} in this style", word));
    }
    const Json& value = *schema->Find(word);
    const auto fits = [types](const Json& one) { return (TypeOfValue(one) & types) != 0; };
    const bool fit = word == "const" || !value.is_array()
                         ? fits(value)
                         : std::all_of(value.as_array().begin(), value.as_array().end(), fits);
    if (!fit) {
      return document_.Refused(schema, word,
                               "values of another type are not left out in this style");
    }
    return CanBeValue(value)
               ? OkStatus()
               : document_.Refused(schema, word, "a text in it could not be read back");
  }

  // What the library takes where no type is named.
  static uint8_t TakenTypes(const Json* schema) {
    for (const char* const word : {"properties", "additionalProperties"}) {
      if (schema->Find(word) != nullptr) return kObject;
    }
    for (const char* const word : {"items", "prefixItems"}) {
      if (schema->Find(word) != nullptr) return kArray;
    }
    return kAnyType;
  }

  Status CheckTyped(const Json* schema) {
    PORTICO_ASSIGN_OR_RETURN(uint8_t types, TypesOf(document_, schema));
    if (schema->Find("type") == nullptr) types = TakenTypes(schema);
    for (const auto& [key, value] : schema->as_object()) {
      const StyledKeyword* const keyword = FindStyledKeyword(key, value, types);
      if (keyword == nullptr) continue;
      if (!keyword->enforced) {
        return document_.Refused(schema, key, "is not enforced in this style");
      }
      if (schema->Find("type") == nullptr && types == kAnyType) {
        return document_.Refused(schema, key, "is not enforced without its type in this style");
      }
    }
    if ((types & kString) != 0 && schema->Find("pattern") != nullptr &&
        (schema->Find("minLength") != nullptr || schema->Find("maxLength") != nullptr)) {
      return document_.Refused(schema, "pattern", "is not enforced beside lengths in this style");
    }
    if ((types & kArray) != 0) PORTICO_RETURN_IF_ERROR(CheckItems(schema));
    return (types & kObject) != 0 ? CheckProperties(schema) : OkStatus();
  }

  Status CheckItems(const Json* schema) {
    const Json* const prefix = schema->Find("prefixItems");
    if (prefix != nullptr && prefix->is_array()) {
      for (const Json& one : prefix->as_array()) PORTICO_RETURN_IF_ERROR(Check(&one));
    }
    const Json* const items = schema->Find("items");
    if (items == nullptr) return OkStatus();
    if (items->is_array()) {
      return document_.Refused(schema, "items", "a list is not enforced in this style");
    }
    return Check(items);
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
    if (properties != nullptr && properties->is_object()) {
      for (const auto& [name, inside] : properties->as_object()) {
        if (!CanBeName(name)) {
          return document_.Refused(schema, "properties", "a name in it could not be read back");
        }
        PORTICO_RETURN_IF_ERROR(Check(&inside));
      }
    }
    const Json* const others = schema->Find("additionalProperties");
    return others == nullptr ? OkStatus() : Check(others);
  }

  const SchemaDocument document_;
  std::set<const Json*> seen_;
};

}  // namespace

Status CheckStyledSchema(Json schema) { return StyledSchema(std::move(schema)).Check(); }

}  // namespace portico::grammar
