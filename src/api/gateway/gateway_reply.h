// Answers of the gateway's own.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::api {

void GatewayReply(net::Exchange& exchange, int status, std::string body,
                  std::string_view content_type = "application/json");
// In OpenAI's form.
void GatewayError(net::Exchange& exchange, int status, std::string_view message,
                  std::string_view code = {});
void GatewayError(net::Exchange& exchange, const Status& status);
// 405. `methods`: those that the path has, as the header Allow has them.
void GatewayNotAllowed(net::Exchange& exchange, std::string_view methods);

}  // namespace portico::api
