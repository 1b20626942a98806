// Answers that every route shares: headers, JSON bodies, errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/context.h"
#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::api {

// The head of an answer with the headers that every answer has: x-request-id (taken from the request or made)
// and CORS where it is on.
net::HttpResponse Head(const net::HttpRequest& request, const ApiContext& api, int status,
                       std::string_view content_type);
inline net::HttpResponse Head(const net::Exchange& exchange, const ApiContext& api, int status,
                              std::string_view content_type) {
  return Head(exchange.request, api, status, content_type);
}

// An error in the form of the request's route, or in OpenAI's where there is none. RESOURCE_EXHAUSTED and UNAVAILABLE
// add Retry-After; 5xx have kFailureHeader where the status has a reason.
net::HttpResponse ErrorResponse(const net::HttpRequest& request, const ApiContext& api,
                                const Status& status);
// The same for what only HTTP has a status for (405, 413, 415).
net::HttpResponse ErrorResponse(const net::HttpRequest& request, const ApiContext& api,
                                int http_status, std::string_view message);

void ReplyJson(net::Exchange& exchange, const ApiContext& api, int status, std::string body);
void ReplyText(net::Exchange& exchange, const ApiContext& api, int status, std::string body);
// ErrorResponse() as the answer.
void ReplyError(net::Exchange& exchange, const ApiContext& api, const Status& status);

// 32 hexadecimal digits that no other request of any process has; behind the prefix, where there is one.
std::string NewRequestId();
std::string NewRequestId(std::string_view prefix);
// The request's X-Request-Id, as its answer has it, or a new one where it has none or one that is no name.
std::string RequestIdOf(const net::HttpRequest& request);
// As long; known ones say nothing of others.
std::string NewSecretId();

}  // namespace portico::api
