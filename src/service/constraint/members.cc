#include "service/constraint/members.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "base/stable_sort.h"
#include "service/constraint/schema_words.h"
#include "service/constraint/tag_format.h"

namespace portico {
namespace {

constexpr size_t kMaxFirst = 16;
constexpr size_t kTextPartBytes = 36;  // of a text in a tag, without it

Json Text(std::string text) {
  return TagObject("const_string", {{"value", Json(std::move(text))}});
}

bool IsKeyword(std::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

// Keywords of a schema that its members do not show.
bool SaysMore(const Json& schema) {
  static constexpr std::string_view kPlain[] = {
      "type",    "properties",  "required",    "additionalProperties",
      "$defs",   "definitions", "description", "title",
      "$schema", "examples"};
  return std::any_of(schema.as_object().begin(), schema.as_object().end(), [](const auto& member) {
    return std::find(std::begin(kPlain), std::end(kPlain), member.first) == std::end(kPlain);
  });
}

struct Member {
  std::string name;
  const Json* schema = nullptr;
  bool required = false;
};

// In the schema's order. False: they are not what can be written.
bool Collect(const Json& schema, const MemberSyntax& syntax, std::vector<Member>* members) {
  static const Json* const kAnyValue = new Json(true);
  if (!schema.is_object() || SaysMore(schema)) return false;
  absl::flat_hash_set<std::string_view> required;
  std::vector<std::string_view> in_order;
  if (const Json* names = schema.Find("required"); names != nullptr && names->is_array()) {
    for (const Json& name : names->as_array()) {
      if (!name.is_string()) return false;
      if (required.insert(name.as_string()).second) in_order.push_back(name.as_string());
    }
  }
  const Json* properties = schema.Find("properties");
  if (properties != nullptr && !properties->is_object()) return false;
  const JsonObject none;
  for (const auto& [name, given] : properties == nullptr ? none : properties->as_object()) {
    if (!syntax.takes(name)) return false;
    members->push_back({name, &given, required.erase(name) > 0});
  }
  for (const std::string_view name : in_order) {
    if (!required.contains(name)) continue;
    if (!syntax.takes(name)) return false;
    members->push_back({std::string(name), kAnyValue, true});
  }
  return true;
}

}  // namespace

Json AnyPythonArguments(const std::function<Json(const Json& schema)>& value) {
  const auto one = [&] {
    return TagSequence({TagObject("regex", {{"pattern", Json("[a-zA-Z_][a-zA-Z0-9_]{0,63}=")}}),
                        value(Json(true))});
  };
  Json more = TagObject("star", {{"content", TagSequence({Text(", "), one()})}});
  return TagOptional(TagSequence({one(), std::move(more)}));
}

WrittenMembers MembersOf(const Json& schema, const MemberSyntax& syntax) {
  WrittenMembers written;
  std::vector<Member> members;
  if (!Collect(schema, syntax, &members)) return {.part = std::nullopt, .exact = false};
  const std::string& separator = syntax.separator;
  if (members.empty()) {
    const Json* const others = schema.Find("additionalProperties");
    if (others != nullptr && *others == Json(false)) {
      written.part = Json();
    } else {
      written.exact = (others == nullptr || SaysOnly(*others, {}));
    }
    return written;
  }
  if (!separator.empty()) {
    StableSort(&members, [](const Member& a, const Member& b) { return a.required > b.required; });
  }
  const bool begins = separator.empty() || members.front().required;
  if (!begins && members.size() > kMaxFirst) return {.part = std::nullopt, .exact = false};
  const auto add = [&](size_t from, JsonArray* parts) {
    for (size_t i = from; i < members.size(); ++i) {
      const Member& member = members[i];
      Json one = syntax.write(parts->empty() ? "" : separator, member.name, *member.schema);
      parts->push_back(member.required ? std::move(one) : TagOptional(std::move(one)));
    }
  };
  if (begins) {
    JsonArray parts;
    add(0, &parts);
    written.part = TagSequence(std::move(parts));
    return written;
  }
  JsonArray ways;
  for (size_t i = 0; i < members.size(); ++i) {
    JsonArray way = {syntax.write("", members[i].name, *members[i].schema)};
    add(i + 1, &way);
    ways.push_back(TagSequence(std::move(way)));
  }
  written.part = TagOptional(TagChoice(std::move(ways)));
  return written;
}

WrittenMembers PythonArguments(const Json& schema, TagBudget* budget,
                               const std::function<Json(const Json& schema)>& value) {
  return MembersOf(
      schema, {.separator = ", ",
               .takes = IsKeyword,
               .write = [&](const std::string& before, const std::string& name, const Json& one) {
                 if (!budget->Take(kTextPartBytes + before.size() + name.size() + 1)) {
                   return Json();
                 }
                 return TagSequence({Text(before + name + "="), value(one)});
               }});
}

}  // namespace portico
