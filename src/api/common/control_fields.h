// Strict reading of what operators ask: pause, flush, weights, sessions and the like. Every name in the query and in the
// body is one that the route defines, or nothing is done: what an unknown one asks for would be left undone without a
// word. Bodies may be empty, null is the same as absent, types and ranges are those of field_reader.h.
#pragma once

#include <simdjson.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "api/common/field_reader.h"
#include "api/common/refused_fields.h"
#include "base/status.h"
#include "net/http/exchange.h"
#include "text/json.h"

namespace portico::api {

// INVALID_ARGUMENT (field `name`): the route of that path defines no such field.
Status NoSuchField(std::string_view path, std::string_view name);

// The same for the first name in the query, or member of a body, that is not one of `known`.
Status CheckQueryNames(const net::HttpRequest& request,
                       std::initializer_list<std::string_view> known);
Status CheckMemberNames(std::string_view path, const Json& body,
                        std::initializer_list<std::string_view> known);

// Reads the body into `target`: fields of `table` by their readers, those of `only_defaults` (sorted by name) if they ask
// for what happens anyway.
template <typename Target, size_t kSize>
Status ReadControlBody(const net::HttpRequest& request, simdjson::dom::parser& parser,
                       const FieldReader<Target> (&table)[kSize],
                       std::span<const RefusedField> only_defaults, Target* target) {
  static const std::string kNothing = "{}";
  return ReadBody(request.body.empty() ? kNothing : request.body, parser, table, target,
                  [&](std::string_view name, Element value) {
                    Status status;
                    if (IsRefusedField(only_defaults, name, value, &status)) return status;
                    return NoSuchField(request.path, name);
                  });
}

// The same of a request whose query says nothing.
template <typename Target, size_t kSize>
Status ReadControl(const net::HttpRequest& request, simdjson::dom::parser& parser,
                   const FieldReader<Target> (&table)[kSize],
                   std::span<const RefusedField> only_defaults, Target* target) {
  PORTICO_RETURN_IF_ERROR(CheckQueryNames(request, {}));
  return ReadControlBody(request, parser, table, only_defaults, target);
}

}  // namespace portico::api
