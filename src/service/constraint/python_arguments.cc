#include "service/constraint/python_arguments.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "service/constraint/tag_format.h"

namespace portico {
namespace {

constexpr size_t kMaxFirst = 16;
constexpr const char* kDefinitions[] = {"$defs", "definitions"};

Json Optional(Json content) { return TagObject("optional", {{"content", std::move(content)}}); }

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

struct Members {
  std::vector<std::pair<std::string, Json>> required;
  std::vector<std::pair<std::string, Json>> optional;
};

// False: they are not what keyword arguments can be.
bool Collect(const Json& schema, Members* members) {
  if (!schema.is_object() || SaysMore(schema)) return false;
  std::vector<std::string> required;
  if (const Json* names = schema.Find("required"); names != nullptr && names->is_array()) {
    for (const Json& name : names->as_array()) {
      if (!name.is_string()) return false;
      required.push_back(name.as_string());
    }
  }
  const Json* properties = schema.Find("properties");
  if (properties != nullptr && !properties->is_object()) return false;
  const JsonObject none;
  for (const auto& [name, given] : properties == nullptr ? none : properties->as_object()) {
    if (!IsKeyword(name)) return false;
    Json one = given;
    for (const char* definitions : kDefinitions) {
      const Json* found = schema.Find(definitions);
      if (found != nullptr && one.is_object()) one.Set(definitions, *found);
    }
    const auto at = std::find(required.begin(), required.end(), name);
    if (at == required.end()) {
      members->optional.emplace_back(name, std::move(one));
    } else {
      required.erase(at);
      members->required.emplace_back(name, std::move(one));
    }
  }
  for (const std::string& name : required) {
    if (!IsKeyword(name)) return false;
    members->required.emplace_back(name, Json(true));
  }
  return !members->required.empty() || members->optional.size() <= kMaxFirst;
}

}  // namespace

size_t PythonArgumentsBytes(const Json& schema, size_t around) {
  const Json* const properties = schema.Find("properties");
  const size_t members =
      properties == nullptr || !properties->is_object() ? 0 : properties->as_object().size();
  const Json* const required = schema.Find("required");
  const bool some = required != nullptr && required->is_array() && !required->as_array().empty();
  if (members == 0 || (!some && members > kMaxFirst)) return 0;
  size_t bytes = properties->Dump().size() + members * around;
  for (const char* definitions : kDefinitions) {
    if (const Json* found = schema.Find(definitions)) bytes += members * found->Dump().size();
  }
  // The last of them ends every way.
  return some ? bytes : std::max(bytes, bytes / 2 * members);
}

Json AnyPythonArguments(const std::function<Json(Json schema)>& value) {
  const auto one = [&] {
    return TagSequence({TagObject("regex", {{"pattern", Json("[a-zA-Z_][a-zA-Z0-9_]{0,63}=")}}),
                        value(Json(true))});
  };
  Json more = TagObject("star", {{"content", TagSequence({Text(", "), one()})}});
  return Optional(TagSequence({one(), std::move(more)}));
}

std::optional<Json> PythonArguments(const Json& schema,
                                    const std::function<Json(Json schema)>& value) {
  Members members;
  if (!Collect(schema, &members)) return std::nullopt;
  const auto argument = [&](const std::pair<std::string, Json>& member, const char* before) {
    return TagSequence({Text(before + member.first + "="), value(member.second)});
  };
  const auto add_optional = [&](size_t from, JsonArray* parts) {
    for (size_t i = from; i < members.optional.size(); ++i) {
      parts->push_back(Optional(argument(members.optional[i], ", ")));
    }
  };
  JsonArray parts;
  for (const auto& member : members.required) {
    parts.push_back(argument(member, parts.empty() ? "" : ", "));
  }
  if (!parts.empty()) {
    add_optional(0, &parts);
    return TagSequence(std::move(parts));
  }
  JsonArray ways;
  for (size_t i = 0; i < members.optional.size(); ++i) {
    JsonArray way = {argument(members.optional[i], "")};
    add_optional(i + 1, &way);
    ways.push_back(TagSequence(std::move(way)));
  }
  return ways.empty() ? Json() : Optional(TagChoice(std::move(ways)));
}

}  // namespace portico
