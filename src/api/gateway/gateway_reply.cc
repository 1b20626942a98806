#include "api/gateway/gateway_reply.h"

#include <fmt/format.h>

#include <utility>

#include "router/proxy/error_body.h"

namespace portico::api {

void GatewayReply(net::Exchange& exchange, int status, std::string body,
                  std::string_view content_type) {
  net::HttpResponse response;
  response.status = status;
  response.content_type = std::string(content_type);
  response.body = std::move(body);
  exchange.Respond(std::move(response));
}

void GatewayError(net::Exchange& exchange, int status, std::string_view message,
                  std::string_view code) {
  GatewayReply(exchange, status, router::GatewayErrorBody(status, message, code));
}

void GatewayNotAllowed(net::Exchange& exchange, std::string_view methods) {
  net::HttpResponse response;
  response.status = 405;
  response.headers.emplace_back("allow", methods);
  const net::HttpRequest& request = exchange.request;
  response.body = router::GatewayErrorBody(
      405, fmt::format("{} is not allowed on {}; use {}", request.method, request.path, methods),
      {});
  exchange.Respond(std::move(response));
}

void GatewayError(net::Exchange& exchange, const Status& status) {
  const int number = HttpStatus(status.code());
  GatewayReply(
      exchange, number,
      router::GatewayErrorBody(number, MessageOf(status), ReasonOf(status), FieldOf(status)));
}

}  // namespace portico::api
