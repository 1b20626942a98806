// What the bodies of control routes have in common.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http/exchange.h"
#include "text/json.h"

namespace portico::api {

// The body of a request without a query. Many clients send none where all fields have defaults: it is an empty object then.
StatusOr<Json> ControlObject(const net::HttpRequest& request);
StatusOr<Json> ControlObject(const std::string& body);
// One without members but these.
StatusOr<Json> ControlMembers(const net::HttpRequest& request,
                              std::initializer_list<std::string_view> known);

// A member that is required, of 1 to 4,096 bytes.
StatusOr<std::string> ControlName(const Json& request, std::string_view field);
// False where there is none.
StatusOr<bool> ControlFlag(const Json& request, std::string_view field);

}  // namespace portico::api
