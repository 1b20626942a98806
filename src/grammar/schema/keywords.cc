#include "grammar/schema/keywords.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "grammar/schema/number_range.h"

namespace portico::grammar {
namespace {

constexpr int kMaxNegations = 16;

enum class Shape { kSchema, kSchemas, kMap, kCount, kNumber, kText, kTexts, kBool, kArray };

struct KeywordShape {
  std::string_view name;
  Shape shape;
};

constexpr KeywordShape kShapes[] = {
    {"$ref", Shape::kText},
    {"additionalItems", Shape::kSchema},
    {"additionalProperties", Shape::kSchema},
    {"allOf", Shape::kSchemas},
    {"anyOf", Shape::kSchemas},
    {"contains", Shape::kSchema},
    {"dependentSchemas", Shape::kMap},
    {"else", Shape::kSchema},
    {"enum", Shape::kArray},
    {"exclusiveMaximum", Shape::kNumber},
    {"exclusiveMinimum", Shape::kNumber},
    {"format", Shape::kText},
    {"if", Shape::kSchema},
    {"maxItems", Shape::kCount},
    {"maxLength", Shape::kCount},
    {"maxProperties", Shape::kCount},
    {"maximum", Shape::kNumber},
    {"minItems", Shape::kCount},
    {"minLength", Shape::kCount},
    {"minProperties", Shape::kCount},
    {"minimum", Shape::kNumber},
    {"multipleOf", Shape::kNumber},
    {"not", Shape::kSchema},
    {"oneOf", Shape::kSchemas},
    {"pattern", Shape::kText},
    {"patternProperties", Shape::kMap},
    {"prefixItems", Shape::kSchemas},
    {"properties", Shape::kMap},
    {"propertyNames", Shape::kSchema},
    {"required", Shape::kTexts},
    {"then", Shape::kSchema},
    {"uniqueItems", Shape::kBool},
};

bool IsSchema(const Json& value) { return value.is_object() || value.is_bool(); }

bool IsCount(const Json& value) {
  if (value.is_int()) return value.as_int() >= 0;
  return value.is_double() && value.as_double() >= 0 && value.as_double() < 1e15 &&
         std::floor(value.as_double()) == value.as_double();
}

bool Fits(const Json& value, Shape shape) {
  switch (shape) {
    case Shape::kSchema:
      return IsSchema(value);
    case Shape::kSchemas:
      return value.is_array() &&
             std::all_of(value.as_array().begin(), value.as_array().end(), IsSchema);
    case Shape::kMap:
      return value.is_object() &&
             std::all_of(value.as_object().begin(), value.as_object().end(),
                         [](const auto& member) { return IsSchema(member.second); });
    case Shape::kCount:
      return IsCount(value);
    case Shape::kNumber:
      return value.is_number();
    case Shape::kText:
      return value.is_string();
    case Shape::kTexts:
      return value.is_array() && std::all_of(value.as_array().begin(), value.as_array().end(),
                                             [](const Json& item) { return item.is_string(); });
    case Shape::kBool:
      return value.is_bool();
    case Shape::kArray:
      return value.is_array();
  }
  return false;
}

Json ObjectOf(std::string_view key, Json value) {
  JsonObject object;
  object.emplace_back(key, std::move(value));
  return Json(std::move(object));
}

Json TypedObject(std::string_view key, Json value, std::string_view type) {
  Json object = ObjectOf("type", Json(type));
  object.Set(key, std::move(value));
  return object;
}

// What does not keep to `name` keeps to `keyword` and is of that type.
struct Contrary {
  std::string_view name;
  std::string_view type;
  std::string_view keyword;
  int step;  // from one's number to the other's
};
constexpr Contrary kContraries[] = {
    {"minimum", "number", "exclusiveMaximum", 0},
    {"exclusiveMinimum", "number", "maximum", 0},
    {"maximum", "number", "exclusiveMinimum", 0},
    {"exclusiveMaximum", "number", "minimum", 0},
    {"minLength", "string", "maxLength", -1},
    {"maxLength", "string", "minLength", 1},
    {"minItems", "array", "maxItems", -1},
    {"maxItems", "array", "minItems", 1},
    {"minProperties", "object", "maxProperties", -1},
    {"maxProperties", "object", "minProperties", 1},
};

const Contrary* ContraryOf(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kContraries), std::end(kContraries),
                                         [name](const Contrary& one) { return one.name == name; });
  return found == std::end(kContraries) ? nullptr : found;
}

constexpr std::pair<uint8_t, std::string_view> kTypeNames[] = {
    {kNull, "null"},     {kBoolean, "boolean"}, {kObject, "object"}, {kArray, "array"},
    {kNumber, "number"}, {kInteger, "integer"}, {kString, "string"},
};

bool IsAnnotation(std::string_view key) {
  return key == "title" || key == "description" || key == "default" || key == "examples" ||
         key == "$comment" || key == "$defs" || key == "definitions" || key == "$schema" ||
         key == "$anchor" || key == "$id" || key == "deprecated" || key == "readOnly" ||
         key == "writeOnly";
}

}  // namespace

StatusOr<uint8_t> TypesOf(const SchemaDocument& document, const Json* schema) {
  const Json* const type = schema->Find("type");
  if (type == nullptr) return kAnyType;
  const auto bits = [](const Json& name) -> uint8_t {
    for (const auto& [bit, text] : kTypeNames) {
      if (name.is_string() && name.as_string() == text) return bit;
    }
    return 0;
  };
  uint8_t types = 0;
  if (type->is_array()) {
    for (const Json& name : type->as_array()) {
      if (bits(name) == 0) return document.Refused(schema, "type", "unknown type " + name.Dump());
      types |= bits(name);
    }
    return types;
  }
  types = bits(*type);
  if (types == 0) return document.Refused(schema, "type", "unknown type " + type->Dump());
  return types;
}

uint8_t TypeOfValue(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_bool()) return kBoolean;
  if (value.is_string()) return kString;
  if (value.is_array()) return kArray;
  if (value.is_object()) return kObject;
  if (value.is_double() && std::floor(value.as_double()) != value.as_double()) return kFraction;
  return kInteger;
}

StatusOr<std::optional<int64_t>> CountOf(const SchemaDocument& document, const Json* schema,
                                         std::string_view keyword) {
  const Json* const value = schema->Find(keyword);
  if (value == nullptr) return std::nullopt;
  if (!IsCount(*value)) {
    return document.Refused(schema, keyword, "must be an integer that is not negative");
  }
  return value->is_int() ? value->as_int() : static_cast<int64_t>(value->as_double());
}

namespace {

const KeywordShape* ShapeOf(std::string_view key) {
  const auto* const known = std::find_if(std::begin(kShapes), std::end(kShapes),
                                         [key](const auto& shape) { return shape.name == key; });
  return known == std::end(kShapes) ? nullptr : known;
}

Status CheckShapes(const SchemaDocument& document, const Json* schema) {
  // A reference may name anything.
  if (!schema->is_object()) {
    return document.Refused(schema, "schema", "must be an object or a boolean");
  }
  for (const auto& [key, value] : schema->as_object()) {
    const KeywordShape* const known = ShapeOf(key);
    if (known != nullptr && !Fits(value, known->shape)) {
      return document.Refused(schema, key, "this value is not one that JSON Schema allows here");
    }
    if (key == "items" && !IsSchema(value) && !Fits(value, Shape::kSchemas)) {
      return document.Refused(schema, key, "must be a schema");
    }
  }
  return OkStatus();
}

}  // namespace

Status CheckKeywords(const SchemaDocument& document, const Json* schema) {
  PORTICO_RETURN_IF_ERROR(CheckShapes(document, schema));
  for (const auto& [key, value] : schema->as_object()) {
    if (key == "$dynamicRef" || key == "$recursiveRef") {
      return document.Refused(schema, key, "is not supported; use $ref");
    }
    if (key == "unevaluatedItems") {
      return document.Refused(schema, key, "is not supported; use items");
    }
  }
  return OkStatus();
}

Status CheckWellFormed(const SchemaDocument& document, const Json* schema) {
  if (schema->is_bool()) return OkStatus();
  PORTICO_RETURN_IF_ERROR(CheckShapes(document, schema));
  PORTICO_RETURN_IF_ERROR(TypesOf(document, schema).status());
  const std::string reference = schema->GetString("$ref");
  if (reference.starts_with('#') && !document.has_inner_ids()) {
    PORTICO_RETURN_IF_ERROR(document.Resolve(schema, reference).status());
  }
  for (const auto& [key, value] : schema->as_object()) {
    const KeywordShape* const known = ShapeOf(key);
    const bool definitions = key == "$defs" || key == "definitions";
    if (known == nullptr && key != "items" && !definitions) continue;
    if (definitions && !Fits(value, Shape::kMap)) {
      return document.Refused(schema, key, "must be an object of schemas");
    }
    if (definitions || (known != nullptr && known->shape == Shape::kMap)) {
      for (const auto& [name, inside] : value.as_object()) {
        PORTICO_RETURN_IF_ERROR(CheckWellFormed(document, &inside));
      }
    } else if (value.is_array() && (known == nullptr || known->shape == Shape::kSchemas)) {
      for (const Json& inside : value.as_array()) {
        PORTICO_RETURN_IF_ERROR(CheckWellFormed(document, &inside));
      }
    } else if (known == nullptr || known->shape == Shape::kSchema) {
      PORTICO_RETURN_IF_ERROR(CheckWellFormed(document, &value));
    }
  }
  return OkStatus();
}

bool IsNotConstant(const Json& negated) {
  if (!negated.is_object()) return false;
  bool constant = false;
  for (const auto& [key, value] : negated.as_object()) {
    if (key == "const" || key == "enum") {
      constant = true;
    } else if (!IsAnnotation(key)) {
      return false;
    }
  }
  return constant;
}

StatusOr<Json> Negated(const SchemaDocument& document, const Json* schema, int depth) {
  if (schema->is_bool()) return Json(!schema->as_bool());
  if (depth > kMaxNegations) return document.Refused(schema, "not", "is nested too deep");
  PORTICO_RETURN_IF_ERROR(CheckKeywords(document, schema));
  JsonArray ways;
  for (const auto& [key, value] : schema->as_object()) {
    if (IsAnnotation(key)) continue;
    if (key == "type") {
      PORTICO_ASSIGN_OR_RETURN(const uint8_t types, TypesOf(document, schema));
      JsonArray others;
      // What is no integer may be a fraction, but no grammar here writes fractions alone: no number then.
      for (const auto& [bit, name] : kTypeNames) {
        if (bit != kInteger && (types & bit) == 0) others.push_back(Json(name));
      }
      if (!others.empty()) ways.push_back(ObjectOf("type", Json(std::move(others))));
    } else if (key == "const" || key == "enum") {
      ways.push_back(ObjectOf("not", ObjectOf(key, value)));
    } else if (key == "required") {
      for (const Json& name : value.as_array()) {
        ways.push_back(
            TypedObject("properties", ObjectOf(name.as_string(), Json(false)), "object"));
      }
    } else if (key == "properties") {
      for (const auto& [name, member] : value.as_object()) {
        PORTICO_ASSIGN_OR_RETURN(Json inside, Negated(document, &member, depth + 1));
        Json way = TypedObject("properties", ObjectOf(name, std::move(inside)), "object");
        way.Set("required", Json(JsonArray{Json(name)}));
        ways.push_back(std::move(way));
      }
    } else if (const Contrary* const contrary = ContraryOf(key)) {
      if (contrary->step == 0) {
        ways.push_back(TypedObject(contrary->keyword, value, contrary->type));
        continue;
      }
      const int64_t count =
          value.is_int() ? value.as_int() : static_cast<int64_t>(value.as_double());
      // There are never fewer than none, nor more than can be counted.
      const int64_t end = contrary->step < 0 ? 0 : std::numeric_limits<int64_t>::max();
      if (count != end) {
        ways.push_back(
            TypedObject(contrary->keyword, Json(count + contrary->step), contrary->type));
      }
    } else if (key == "not") {
      ways.push_back(value);
    } else if (key == "anyOf" || key == "allOf") {
      JsonArray parts;
      for (const Json& part : value.as_array()) {
        PORTICO_ASSIGN_OR_RETURN(Json inside, Negated(document, &part, depth + 1));
        parts.push_back(std::move(inside));
      }
      ways.push_back(ObjectOf(key == "anyOf" ? "allOf" : "anyOf", Json(std::move(parts))));
    } else if (key == "$ref") {
      PORTICO_ASSIGN_OR_RETURN(const Json* const target,
                               document.Resolve(schema, value.as_string()));
      PORTICO_ASSIGN_OR_RETURN(Json inside, Negated(document, target, depth + 1));
      ways.push_back(std::move(inside));
    } else {
      return document.Refused(schema, key, "cannot be negated");
    }
  }
  if (ways.empty()) return Json(false);
  if (ways.size() == 1) return std::move(ways[0]);
  return ObjectOf("anyOf", Json(std::move(ways)));
}

bool SameValue(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    const auto first = Decimal::Of(a);
    const auto second = Decimal::Of(b);
    if (!first || !second) return a == b;
    return Decimal::Compare(*first, *second) == 0;
  }
  if (a.is_array() && b.is_array()) {
    return std::equal(a.as_array().begin(), a.as_array().end(), b.as_array().begin(),
                      b.as_array().end(), SameValue);
  }
  if (a.is_object() && b.is_object()) {
    if (a.as_object().size() != b.as_object().size()) return false;
    return std::all_of(a.as_object().begin(), a.as_object().end(), [&b](const auto& member) {
      const Json* const other = b.Find(member.first);
      return other != nullptr && SameValue(member.second, *other);
    });
  }
  return a == b;
}

}  // namespace portico::grammar
