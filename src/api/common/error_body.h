// Error bodies in OpenAI's form, which SGLang's routes use too: {"error":{"message","type","param","code"}}.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::api {

// `type` follows from HttpStatus(status.code()), `param` is the status's field, `code` its reason.
std::string ErrorBody(const Status& status);

// For errors of the transport (404 path, 405, 413, 415, 431). Empty `param` and `code` become null.
std::string ErrorBody(int http_status, std::string_view message, std::string_view param = {},
                      std::string_view code = {});

}  // namespace portico::api
