// Arguments of calls that are written as Python's keyword arguments, as a part of a structural tag.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "text/json.h"

namespace portico {

// `key=VALUE, key=VALUE`, values as JSON, by the members of an object's schema: required ones first, then the others in the
// schema's order, each of which may be left out. `value` makes the part of one member from its schema. Null: there can be
// no argument. Nothing: the schema is more than members and `required`, has names that are no keywords, or more than 16
// members of which none is required, as all ways to begin would have to be written out.
std::optional<Json> PythonArguments(const Json& schema,
                                    const std::function<Json(Json schema)>& value);

// How many bytes PythonArguments() writes at least, with `around` of them around each schema: the definitions stand beside
// each member, and all ways to begin are written out.
size_t PythonArgumentsBytes(const Json& schema, size_t around);

// Any keyword arguments.
Json AnyPythonArguments(const std::function<Json(Json schema)>& value);

}  // namespace portico
