#include "service/constraint/schema_words.h"

#include <algorithm>
#include <string>

namespace portico {
namespace {

constexpr std::string_view kRestrictions[] = {
    // Of any value.
    "type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref",
    "$dynamicRef", "$recursiveRef",
    // Of numbers and strings.
    "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema",
    // Of lists.
    "maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "items", "prefixItems",
    "additionalItems", "contains", "unevaluatedItems",
    // Of objects.
    "maxProperties", "minProperties", "required", "dependentRequired", "properties",
    "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas",
    "dependencies", "unevaluatedProperties"};

template <typename Words>
bool HasWord(const Words& words, std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

}  // namespace

bool SaysOnly(const Json& schema, std::initializer_list<std::string_view> words) {
  if (!schema.is_object()) return schema == Json(true);
  const JsonObject& members = schema.as_object();
  return std::all_of(members.begin(), members.end(), [&](const auto& member) {
    return HasWord(words, member.first) || !HasWord(kRestrictions, member.first);
  });
}

const Json* ReferredSchema(const Json& root, const Json& schema) {
  const Json* const ref = schema.Find("$ref");
  if (ref == nullptr || !ref->is_string() || !ref->as_string().starts_with("#/")) return nullptr;
  const Json* at = &root;
  std::string_view rest = std::string_view(ref->as_string()).substr(2);
  while (at != nullptr) {
    const size_t slash = rest.find('/');
    at = at->Find(rest.substr(0, slash));
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  return at;
}

}  // namespace portico
