// OpenAI's name for what kind of error an HTTP status is: one table, for whoever writes an error's body.
#pragma once

#include <string_view>

namespace portico {

// "invalid_request_error", "server_error"… of a status from 400 to 599. Points to static text.
std::string_view ErrorType(int http_status);

}  // namespace portico
