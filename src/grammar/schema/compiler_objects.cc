// Objects: declared members in the order of the schema, then others.
#include <fmt/format.h>

#include <algorithm>

#include "base/stable_sort.h"
#include "grammar/schema/compiler.h"
#include "grammar/schema/pattern.h"
#include "grammar/schema/validate.h"
#include "text/utf8.h"

namespace portico::grammar {
namespace {

constexpr int64_t kMaxMemberStates = 20000;

std::u32string CodePoints(std::string_view utf8) {
  std::u32string points;
  while (!utf8.empty()) {
    const size_t length = std::max<size_t>(Utf8SequenceLength(utf8), 1);
    points.push_back(Utf8Decode(utf8, length));
    utf8.remove_prefix(length);
  }
  return points;
}

void AddName(std::vector<std::string>* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// Whether these propertyNames say nothing: names are strings anyway.
bool TakesAnyName(const Json& rule) {
  if (rule.is_bool()) return rule.as_bool();
  if (!rule.is_object()) return false;
  return rule.as_object().empty() ||
         (rule.as_object().size() == 1 && rule.GetString("type") == "string");
}

}  // namespace

struct SchemaCompiler::ObjectShape {
  std::vector<std::string> names;  // as declared, or required
  std::vector<std::string> required;
  int64_t min = 0;
  int64_t max = -1;
  std::vector<Part> name_rules;  // propertyNames
  const Json* patterns = nullptr;
  const Json* patterns_schema = nullptr;
  const Json* counted = nullptr;
  bool says_others = false;

  bool Requires(const std::string& name) const {
    return std::find(required.begin(), required.end(), name) != required.end();
  }
};

Status SchemaCompiler::ReadObject(const Part& part, ObjectShape* shape) const {
  const Json* const schema = part.schema;
  if (const Json* const properties = schema->Find("properties")) {
    for (const auto& [name, member] : properties->as_object()) AddName(&shape->names, name);
  }
  if (const Json* const required = schema->Find("required")) {
    for (const Json& name : required->as_array()) {
      AddName(&shape->required, name.as_string());
    }
  }
  PORTICO_ASSIGN_OR_RETURN(const auto low, CountOf(document_, schema, "minProperties"));
  PORTICO_ASSIGN_OR_RETURN(const auto high, CountOf(document_, schema, "maxProperties"));
  if (low || high) shape->counted = schema;
  shape->min = std::max(shape->min, low.value_or(0));
  if (high) shape->max = shape->max < 0 ? *high : std::min(shape->max, *high);
  const Json* const names = schema->Find("propertyNames");
  if (names != nullptr && !TakesAnyName(*names)) shape->name_rules.push_back({names, 0});
  if (schema->Find("additionalProperties") != nullptr) shape->says_others = true;
  if (const Json* const patterns = schema->Find("patternProperties");
      patterns != nullptr && !patterns->as_object().empty()) {
    if (shape->patterns != nullptr && patterns != shape->patterns) {
      return document_.Refused(schema, "patternProperties",
                               "is not supported in two schemas at once");
    }
    shape->patterns = patterns;
    shape->patterns_schema = schema;
  }
  const Json* const unevaluated = schema->Find("unevaluatedProperties");
  if (unevaluated != nullptr && !(unevaluated->is_bool() && unevaluated->as_bool())) {
    for (const char* const key : {"allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas",
                                  "additionalProperties", "not"}) {
      if (schema->Find(key) == nullptr) continue;
      return document_.Refused(schema, "unevaluatedProperties",
                               fmt::format("is not supported beside {}", key));
    }
    shape->says_others = true;
  }
  return OkStatus();
}

// What all schemas together say of the member `name`.
StatusOr<Parts> SchemaCompiler::MemberParts(const Parts& parts, std::string_view name) const {
  Parts inside;
  const auto add = [&inside](const Json* schema) {
    const Part part{schema, 0};
    const auto at = std::lower_bound(inside.begin(), inside.end(), part);
    if (at == inside.end() || *at != part) inside.insert(at, part);
  };
  for (const Part& part : parts) {
    bool known = false;
    if (const Json* const properties = part.schema->Find("properties")) {
      if (const Json* const member = properties->Find(name)) {
        add(member);
        known = true;
      }
    }
    if (const Json* const patterns = part.schema->Find("patternProperties")) {
      for (const auto& [pattern, member] : patterns->as_object()) {
        const auto matches = MatchesPattern(pattern, name);
        if (!matches.ok()) {
          return document_.Refused(part.schema, "patternProperties", MessageOf(matches.status()));
        }
        if (!*matches) continue;
        add(&member);
        known = true;
      }
    }
    if (known) continue;
    for (const char* const key : {"additionalProperties", "unevaluatedProperties"}) {
      if (const Json* const others = part.schema->Find(key)) add(others);
    }
  }
  return inside;
}

// `"` and the rest of a key that is none of `names`.
Expr SchemaCompiler::OtherKey(const std::vector<std::string>& names) {
  if (names.empty()) return AnyString();
  std::vector<std::u32string> rest;
  for (const std::string& name : names) rest.push_back(CodePoints(name));
  std::sort(rest.begin(), rest.end());
  return Expr::Sequence({Expr::Text("\""), KeyBehind(std::move(rest))});
}

// What may follow a prefix that the names behind it (sorted) have in common.
Expr SchemaCompiler::KeyBehind(std::vector<std::u32string> rest) {
  const auto [chars, added] = shared_.try_emplace("key_chars", 0);
  if (added) {
    chars->second = rules_.Add("key_chars");
    rules_.Set(chars->second,
               Expr::Choice(
                   {Expr::Text("\""), Expr::Sequence({AnyJsonChar(), Expr::Rule(chars->second)})}));
  }
  const Expr any = Expr::Rule(chars->second);
  std::vector<Expr> ways;
  size_t i = 0;
  if (!rest.empty() && rest[0].empty()) {
    ++i;  // this very text is a name
  } else {
    ways.push_back(Expr::Text("\""));
  }
  CharRanges next;
  while (i < rest.size()) {
    const char32_t c = rest[i][0];
    next.emplace_back(c, c);
    std::vector<std::u32string> behind;
    for (; i < rest.size() && rest[i][0] == c; ++i) behind.push_back(rest[i].substr(1));
    const int32_t rule = rules_.Add("key");
    rules_.Set(rule, KeyBehind(std::move(behind)));
    ways.push_back(Expr::Sequence({JsonChar({{c, c}}), Expr::Rule(rule)}));
  }
  ways.push_back(Expr::Sequence({JsonChar(Complement(Normalized(std::move(next)))), any}));
  return Expr::Choice(std::move(ways));
}

// A member whose name is not declared; nullopt: there is none.
StatusOr<std::optional<Expr>> SchemaCompiler::OtherMember(const Parts& parts,
                                                          const ObjectShape& shape) {
  if (options_.closed_objects && !shape.says_others && !shape.names.empty() &&
      shape.patterns == nullptr) {
    return std::nullopt;
  }
  Parts inside;
  for (const Part& part : parts) {
    for (const char* const key : {"additionalProperties", "unevaluatedProperties"}) {
      const Json* const others = part.schema->Find(key);
      if (others == nullptr) continue;
      if (others->is_bool() && !others->as_bool()) return std::nullopt;
      const Part other{others, 0};
      const auto at = std::lower_bound(inside.begin(), inside.end(), other);
      if (at == inside.end() || *at != other) inside.insert(at, other);
    }
  }
  PORTICO_ASSIGN_OR_RETURN(Expr value, ValueOf(std::move(inside)));
  Expr key;
  if (shape.name_rules.empty()) {
    key = OtherKey(shape.names);
  } else {
    // A name is a string, whatever else its rules allow.
    Parts rules = shape.name_rules;
    rules.push_back({document_.Derived(rules[0].schema, "name",
                                       [] { return Json(JsonObject{{"type", Json("string")}}); }),
                     0});
    PORTICO_ASSIGN_OR_RETURN(const auto names, Flatten(std::move(rules)));
    if (!names) return std::nullopt;
    uint8_t types = kAnyType;
    for (const Part& rule : *names) {
      PORTICO_ASSIGN_OR_RETURN(const uint8_t own, TypesOf(document_, rule.schema));
      types &= own;
    }
    if ((types & kString) == 0) return std::nullopt;
    PORTICO_ASSIGN_OR_RETURN(auto finite, Finite(*names));
    if (!finite) {
      PORTICO_ASSIGN_OR_RETURN(const auto choice, Choices(*names));
      if (choice) {
        return document_.Refused(shape.name_rules[0].schema, "propertyNames",
                                 "choices between schemas are not supported here");
      }
    }
    for (const std::string& name : shape.names) {
      bool good = true;
      for (const Part& rule : *names) {
        if (!good) break;
        PORTICO_ASSIGN_OR_RETURN(good, Satisfies(document_, rule.schema, Json(name)));
      }
      if (!good) continue;
      return document_.Refused(shape.name_rules[0].schema, "propertyNames",
                               "is not supported where declared properties have such names");
    }
    if (finite) {
      key = std::move(*finite);
    } else {
      PORTICO_ASSIGN_OR_RETURN(key, StringOf(*names, NameEndAhead()));
    }
  }
  return std::optional<Expr>(Expr::Sequence({std::move(key), Colon(), std::move(value)}));
}

// Members whose names match patternProperties: with one pattern, and nothing else that is not declared.
StatusOr<std::optional<Expr>> SchemaCompiler::PatternMembers(const Parts& parts,
                                                             const ObjectShape& shape) {
  const auto refuse = [&](std::string_view what) {
    return document_.Refused(shape.patterns_schema, "patternProperties", what);
  };
  for (const Part& part : parts) {
    const Json* const others = part.schema->Find("additionalProperties");
    if (part.schema != shape.patterns_schema) {
      if (others != nullptr) return refuse("is not supported beside another additionalProperties");
      continue;
    }
    if (others == nullptr || !others->is_bool() || others->as_bool()) {
      return refuse("is supported only with additionalProperties: false");
    }
  }
  if (!shape.name_rules.empty()) return refuse("is not supported beside propertyNames");
  if (shape.patterns->as_object().size() > 1)
    return refuse("more than one pattern is not supported");
  const auto& [pattern, schema] = shape.patterns->as_object()[0];
  for (const std::string& name : shape.names) {
    const auto matches = MatchesPattern(pattern, name);
    if (!matches.ok()) return refuse(MessageOf(matches.status()));
    if (*matches) return refuse("is not supported where declared properties match the pattern");
  }
  auto inside = PatternInside(pattern);
  if (!inside.ok()) return refuse(MessageOf(inside.status()));
  PORTICO_ASSIGN_OR_RETURN(Expr value, ValueOf({{&schema, 0}}));
  return std::optional<Expr>(Expr::Sequence(
      {Expr::Text("\""),
       WithCountedPieces(*std::move(inside), CountedChars::kJson, NameEndAhead(), &rules_),
       Expr::Text("\""), Colon(), std::move(value)}));
}

StatusOr<Expr> SchemaCompiler::ObjectOf(const Parts& parts) {
  ObjectShape shape;
  Parts ordered = parts;
  StableSort(&ordered, [this](const Part& a, const Part& b) {
    return document_.OrderOf(a.schema) < document_.OrderOf(b.schema);
  });
  for (const Part& part : ordered) PORTICO_RETURN_IF_ERROR(ReadObject(part, &shape));
  for (const std::string& name : shape.required) AddName(&shape.names, name);
  if (shape.max >= 0 && shape.min > shape.max) return Expr::Never();
  std::vector<Expr> members;
  for (const std::string& name : shape.names) {
    PORTICO_ASSIGN_OR_RETURN(Parts inside, MemberParts(parts, name));
    bool allowed = true;
    for (const Part& rule : shape.name_rules) {
      PORTICO_ASSIGN_OR_RETURN(const bool good, Satisfies(document_, rule.schema, Json(name)));
      allowed = allowed && good;
    }
    Expr value = Expr::Never();
    if (allowed) {
      PORTICO_ASSIGN_OR_RETURN(value, ValueOf(std::move(inside)));
    }
    members.push_back(Expr::Sequence({Expr::Text(Json(name).Dump()), Colon(), std::move(value)}));
  }
  std::optional<Expr> other;
  if (shape.patterns != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(other, PatternMembers(parts, shape));
  } else {
    PORTICO_ASSIGN_OR_RETURN(other, OtherMember(parts, shape));
  }
  PORTICO_ASSIGN_OR_RETURN(Expr chain, MemberChain(shape, members, other));
  return Expr::Sequence({Expr::Text("{"), space_(), std::move(chain)});
}

// What follows `{`. The rule (i, n) is what may follow when the members before i are decided and n of them are there. n is
// counted only as far as bounds on their number ask for, else it tells whether a comma is due.
StatusOr<Expr> SchemaCompiler::MemberChain(const ObjectShape& shape,
                                           const std::vector<Expr>& members,
                                           const std::optional<Expr>& other) {
  const auto size = static_cast<int64_t>(members.size());
  int64_t most = 1;  // n stays here
  const auto required = static_cast<int64_t>(shape.required.size());
  const bool counts_min = shape.min > std::max<int64_t>(required, 1);
  const bool counts_max = shape.max >= 0 && (other || shape.max < size);
  if (counts_min) most = std::max(most, shape.min);
  if (counts_max) most = std::max(most, shape.max);
  // A name twice is one property.
  if (shape.min > 1 && other && shape.min > required) {
    return document_.Refused(
        shape.counted, "minProperties",
        "greater than 1 is not supported where undeclared properties are allowed");
  }
  if ((size + 1) * most > kMaxMemberStates) {
    return document_.Refused(shape.counted != nullptr ? shape.counted : document_.root(),
                             "properties", "too many properties");
  }
  const bool counting = counts_min || counts_max;
  const auto close = [&](int64_t n) -> Expr {
    if (n < std::min(shape.min, most)) return Expr::Never();
    return n == 0 ? Expr::Text("}") : Expr::Sequence({space_(), Expr::Text("}")});
  };
  const auto full = [&](int64_t n) { return counts_max && n >= shape.max; };
  const auto grown = [&](int64_t n) { return std::min(n + 1, most); };
  const auto with_comma = [&](int64_t n, const Expr& member) {
    return n == 0 ? member : Expr::Sequence({Comma(), member});
  };
  // Behind all declared members, for each n.
  std::vector<Expr> row(most + 1, Expr::Never());
  for (int64_t n = most; n >= 0; --n) {
    std::vector<Expr> ways{close(n)};
    if (other && !full(n)) {
      if (!counting || (n == most && !full(grown(n)))) {
        Expr more = Expr::Repeat(Expr::Sequence({Comma(), *other}), 0, -1);
        Expr end = Expr::Sequence({space_(), Expr::Text("}")});
        Expr list = n == 0 ? Expr::Sequence({*other, std::move(more), std::move(end)})
                           : Expr::Sequence({std::move(more), std::move(end)});
        if (n > 0) ways.clear();
        ways.push_back(std::move(list));
      } else {
        ways.push_back(Expr::Sequence({with_comma(n, *other), row[grown(n)]}));
      }
    }
    PORTICO_ASSIGN_OR_RETURN(const int32_t rule, Shared("others", Expr::Choice(std::move(ways))));
    row[n] = Expr::Rule(rule);
  }
  for (int64_t i = size; i-- > 0;) {
    std::vector<Expr> before(most + 1, Expr::Never());
    for (int64_t n = 0; n <= most; ++n) {
      std::vector<Expr> ways;
      if (!full(n)) ways.push_back(Expr::Sequence({with_comma(n, members[i]), row[grown(n)]}));
      if (!shape.Requires(shape.names[i])) ways.push_back(row[n]);
      PORTICO_ASSIGN_OR_RETURN(const int32_t rule,
                               Shared("members", Expr::Choice(std::move(ways))));
      before[n] = Expr::Rule(rule);
    }
    row = std::move(before);
  }
  return row[0];
}

}  // namespace portico::grammar
