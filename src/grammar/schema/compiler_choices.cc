// Choices that a schema words otherwise than anyOf: oneOf, and members that depend on others.
#include <fmt/format.h>

#include "grammar/schema/compiler.h"

namespace portico::grammar {
namespace {

Json ObjectWith(std::string_view key, Json value) {
  JsonObject object;
  object.emplace_back(key, std::move(value));
  return Json(std::move(object));
}

Json Forbids(const std::string& name) {
  return ObjectWith("properties", ObjectWith(name, Json(false)));
}

// What can be seen of a schema's values without following a choice.
struct Outline {
  uint8_t types = kAnyType;
  std::optional<std::vector<const Json*>> values;  // all that can be
  std::vector<std::pair<std::string, const Json*>> members;
  std::vector<std::string> required;
};

Status Look(const SchemaDocument& document, const Json* schema, int depth, Outline* outline) {
  if (schema->is_bool()) {
    if (!schema->as_bool()) outline->types = 0;
    return OkStatus();
  }
  if (depth > 8 || !schema->is_object()) return OkStatus();
  PORTICO_RETURN_IF_ERROR(CheckKeywords(document, schema));
  PORTICO_ASSIGN_OR_RETURN(const uint8_t types, TypesOf(document, schema));
  outline->types &= types;
  if (const Json* const constant = schema->Find("const")) {
    outline->values = std::vector<const Json*>{constant};
  } else if (const Json* const list = schema->Find("enum"); list && !outline->values) {
    outline->values.emplace();
    for (const Json& value : list->as_array()) outline->values->push_back(&value);
  }
  if (const Json* const members = schema->Find("properties")) {
    for (const auto& [name, member] : members->as_object()) {
      outline->members.emplace_back(name, &member);
    }
  }
  if (const Json* const required = schema->Find("required")) {
    for (const Json& name : required->as_array()) outline->required.push_back(name.as_string());
  }
  if (const Json* const reference = schema->Find("$ref")) {
    PORTICO_ASSIGN_OR_RETURN(const Json* const target,
                             document.Resolve(schema, reference->as_string()));
    PORTICO_RETURN_IF_ERROR(Look(document, target, depth + 1, outline));
  }
  if (const Json* const all = schema->Find("allOf")) {
    for (const Json& part : all->as_array()) {
      PORTICO_RETURN_IF_ERROR(Look(document, &part, depth + 1, outline));
    }
  }
  return OkStatus();
}

StatusOr<bool> AreDisjoint(const SchemaDocument& document, const Json* a, const Json* b,
                           int depth) {
  Outline first;
  Outline second;
  PORTICO_RETURN_IF_ERROR(Look(document, a, 0, &first));
  PORTICO_RETURN_IF_ERROR(Look(document, b, 0, &second));
  for (Outline* const outline : {&first, &second}) {
    if (!outline->values) continue;
    uint8_t types = 0;
    for (const Json* const value : *outline->values) types |= TypeOfValue(*value);
    outline->types &= types;
  }
  const uint8_t common = first.types & second.types;
  if (common == 0) return true;
  if (first.values && second.values) {
    bool shared = false;
    for (const Json* const x : *first.values) {
      for (const Json* const y : *second.values) shared = shared || SameValue(*x, *y);
    }
    if (!shared) return true;
  }
  if (common != kObject || depth > 2) return false;
  // A member that both require, and whose values tell them apart.
  for (const auto& [name, member] : first.members) {
    const auto requires_it = [&n = name](const Outline& outline) {
      return std::find(outline.required.begin(), outline.required.end(), n) !=
             outline.required.end();
    };
    const bool by_first = requires_it(first);
    const bool by_second = requires_it(second);
    for (const auto& [other_name, other] : second.members) {
      if (other_name != name) continue;
      // Forbidden here and required there.
      const bool never_first = member->is_bool() && !member->as_bool();
      const bool never_second = other->is_bool() && !other->as_bool();
      if ((never_first && by_second) || (never_second && by_first)) return true;
      if (!by_first && !by_second) continue;
      if (!(by_first && by_second)) continue;
      PORTICO_ASSIGN_OR_RETURN(const bool apart, AreDisjoint(document, member, other, depth + 1));
      if (apart) return true;
    }
  }
  return false;
}

}  // namespace

StatusOr<bool> SchemaCompiler::Disjoint(const Json* a, const Json* b) const {
  return AreDisjoint(document_, a, b, 0);
}

// Branches that may overlap also say what the others must not be.
StatusOr<std::vector<const Json*>> SchemaCompiler::OneOfBranches(const Json* schema) {
  const JsonArray& list = schema->Find("oneOf")->as_array();
  if (list.size() > 256) {
    return document_.Refused(schema, "oneOf", "more than 256 branches");
  }
  std::vector<const Json*> branches;
  for (size_t i = 0; i < list.size(); ++i) {
    JsonArray all{list[i]};
    for (size_t j = 0; j < list.size(); ++j) {
      if (j == i) continue;
      PORTICO_ASSIGN_OR_RETURN(const bool apart, Disjoint(&list[i], &list[j]));
      if (apart) continue;
      StatusOr<Json> other = Negated(document_, &list[j]);
      if (!other.ok()) {
        return document_.Refused(
            schema, "oneOf",
            fmt::format(
                "branches {} and {} may both hold: make them exclude each other, or use anyOf",
                std::min(i, j), std::max(i, j)));
      }
      all.push_back(*std::move(other));
    }
    if (all.size() == 1) {
      branches.push_back(&list[i]);
      continue;
    }
    branches.push_back(document_.Derived(schema, fmt::format("oneOf/{}", i), [&all] {
      return ObjectWith("allOf", Json(std::move(all)));
    }));
  }
  return branches;
}

// dependentRequired, dependentSchemas and draft 7's dependencies: without the member, or with all that it brings. Several
// become an allOf of such choices; `count` is how many there are.
StatusOr<std::vector<const Json*>> SchemaCompiler::DependentBranches(const Json* schema,
                                                                     size_t* count) {
  JsonArray choices;
  for (const char* const keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    const Json* const map = schema->Find(keyword);
    if (map == nullptr) continue;
    if (!map->is_object()) return document_.Refused(schema, keyword, "must be an object");
    for (const auto& [name, needs] : map->as_object()) {
      Json with = ObjectWith("required", Json(JsonArray{Json(name)}));
      if (needs.is_array()) {
        JsonArray names{Json(name)};
        for (const Json& other : needs.as_array()) {
          if (!other.is_string()) {
            return document_.Refused(schema, keyword, "must hold names of properties");
          }
          names.push_back(other);
        }
        with.Set("required", Json(std::move(names)));
      } else if (needs.is_object() || needs.is_bool()) {
        with.Set("allOf", Json(JsonArray{needs}));
      } else {
        return document_.Refused(schema, keyword, "must hold schemas or names of properties");
      }
      choices.push_back(ObjectWith("anyOf", Json(JsonArray{Forbids(name), std::move(with)})));
    }
  }
  *count = choices.size();
  if (choices.empty()) return std::vector<const Json*>{};
  return std::vector<const Json*>{document_.Derived(
      schema, "dependent", [&choices] { return ObjectWith("allOf", Json(std::move(choices))); })};
}

}  // namespace portico::grammar
