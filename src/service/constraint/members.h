// Members of an object that are written one behind the other and not as JSON, as a part of a structural tag.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "service/constraint/tag_budget.h"
#include "text/json.h"

namespace portico {

struct MemberSyntax {
  std::string separator;  // between two members
  // Whether a member's name can be written.
  std::function<bool(std::string_view name)> takes;
  // One member behind `before`, which is the separator or empty.
  std::function<Json(const std::string& before, const std::string& name, const Json& schema)> write;
};

struct WrittenMembers {
  std::optional<Json> part;  // null: there can be no member; nothing: there may be any
  bool exact = true;         // the part holds all that the schema says of them
};

// The members of an object's schema, each of which may be left out unless it is required; required ones come first where
// there is a separator. Names that cannot be written are left out. Members come in any order, as often as the model likes, if
// the schema says more of them than its members, `required` and additionalProperties, or if, with a separator, there are more
// than 16 of which none is required, as all ways to begin would have to be written out.
WrittenMembers MembersOf(const Json& schema, const MemberSyntax& syntax);

// Python's keyword arguments, `key=VALUE, key=VALUE`, values as JSON. `value` makes the part of one value from its schema. Nothing
// to be used once the budget is spent.
WrittenMembers PythonArguments(const Json& schema, TagBudget* budget,
                               const std::function<Json(const Json& schema)>& value);
// Any keyword arguments.
Json AnyPythonArguments(const std::function<Json(const Json& schema)>& value);

}  // namespace portico
