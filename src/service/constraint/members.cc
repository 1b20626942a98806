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

struct Member {
  std::string name;
  const Json* schema = nullptr;
  bool required = false;
};

// In the schema's order, those that can be written. False: there are others.
bool Collect(const Json& schema, const MemberSyntax& syntax, std::vector<Member>* members) {
  static const Json* const kAnyValue = new Json(true);
  absl::flat_hash_set<std::string_view> required;
  std::vector<std::string_view> in_order;
  bool all = true;
  if (const Json* names = schema.Find("required"); names != nullptr && names->is_array()) {
    for (const Json& name : names->as_array()) {
      if (!name.is_string()) {
        all = false;
      } else if (required.insert(name.as_string()).second) {
        in_order.push_back(name.as_string());
      }
    }
  }
  const auto add = [&](std::string_view name, const Json& one, bool is_required) {
    if (syntax.takes(name)) {
      members->push_back({std::string(name), &one, is_required});
    } else {
      all = false;
    }
  };
  const Json* properties = schema.Find("properties");
  const JsonObject none;
  const bool has = properties != nullptr && properties->is_object();
  for (const auto& [name, given] : has ? properties->as_object() : none) {
    add(name, given, required.erase(name) > 0);
  }
  for (const std::string_view name : in_order) {
    if (required.contains(name)) add(name, *kAnyValue, true);
  }
  return all;
}

// One of them, as often as the model likes.
Json InAnyOrder(const std::vector<Member>& members, const MemberSyntax& syntax) {
  const auto one = [&](const std::string& before) {
    JsonArray ways;
    for (const Member& member : members) {
      ways.push_back(syntax.write(before, member.name, *member.schema));
    }
    return TagChoice(std::move(ways));
  };
  if (syntax.separator.empty()) return TagStar(one(""));
  return TagOptional(TagSequence({one(""), TagStar(one(syntax.separator))}));
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
  if (!schema.is_object()) return {.part = std::nullopt, .exact = false};
  const bool plain = SaysOnly(schema, {"type", "properties", "required", "additionalProperties"});
  std::vector<Member> members;
  written.exact = Collect(schema, syntax, &members) && plain;
  const std::string& separator = syntax.separator;
  if (members.empty()) {
    const Json* const others = schema.Find("additionalProperties");
    if (others != nullptr && *others == Json(false)) {
      written.part = Json();
    } else {
      written.exact = written.exact && (others == nullptr || SaysOnly(*others, {}));
    }
    return written;
  }
  if (!separator.empty()) {
    StableSort(&members, [](const Member& a, const Member& b) { return a.required > b.required; });
  }
  const bool begins = separator.empty() || members.front().required;
  if (!plain || (!begins && members.size() > kMaxFirst)) {
    written.exact = false;
    written.part = InAnyOrder(members, syntax);
    return written;
  }
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
