// Lines of --log-requests for requests that were refused or have failed: which, and why.
#pragma once

#include <string>
#include <string_view>

#include "api/context.h"
#include "base/status.h"

namespace portico::api {

// Where the server logs requests; `what`: "POST /generate 400"; `id`: the answer's x-request-id, or empty. At most ten lines a
// second, since any client can cause them. Any thread.
void LogRefusal(const ApiContext& api, std::string_view what, std::string_view id,
                const Status& status);

// What such a line has of the status: field, message and code. Contents of requests are not logged: of a message there is what
// precedes the first value or name in it, and nothing where it may begin with one.
std::string ShownReason(const Status& status);

}  // namespace portico::api
