// Answers that every route shares: headers, JSON bodies, errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/context.h"
#include "base/status.h"
#include "net/exchange.h"

namespace portico::api {

// The head of an answer with the headers that every answer has: x-request-id (taken from the request or made)
// and CORS where it is on.
net::HttpResponse Head(const net::Exchange& exchange, const ApiContext& api, int status,
                       std::string_view content_type);

void ReplyJson(net::Exchange& exchange, const ApiContext& api, int status, std::string body);
void ReplyText(net::Exchange& exchange, const ApiContext& api, int status, std::string body);
// The error body in OpenAI's form; RESOURCE_EXHAUSTED adds Retry-After.
void ReplyError(net::Exchange& exchange, const ApiContext& api, const Status& status);

// True if the request's content type is JSON or not named. Else answers 415.
bool TakesJson(net::Exchange& exchange, const ApiContext& api);

// 32 hexadecimal digits that no other request of any process has.
std::string NewRequestId();

}  // namespace portico::api
