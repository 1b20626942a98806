#include "api/reply.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "api/common/error_body.h"
#include "api/route_table.h"

namespace portico::api {
namespace {

constexpr size_t kMaxRequestId = 128;

bool IsUsableId(std::string_view id) {
  if (id.empty() || id.size() > kMaxRequestId) return false;
  for (char c : id) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

}  // namespace

std::string NewRequestId() {
  static thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  constexpr char kHex[] = "0123456789abcdef";
  std::string id(32, '0');
  for (int half = 0; half < 2; ++half) {
    uint64_t bits = random();
    for (int i = 0; i < 16; ++i, bits >>= 4) id[half * 16 + i] = kHex[bits & 15];
  }
  return id;
}

std::string RequestIdOf(const net::HttpRequest& request) {
  const std::string_view id = request.Header("x-request-id");
  return IsUsableId(id) ? std::string(id) : NewRequestId();
}

std::string NewSecretId() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", device());
  return id;
}

net::HttpResponse Head(const net::HttpRequest& request, const ApiContext& api, int status,
                       std::string_view content_type) {
  net::HttpResponse response;
  response.status = status;
  response.content_type = content_type;
  response.headers.emplace_back("x-request-id", RequestIdOf(request));
  if (!api.cors_origin.empty()) {
    response.headers.emplace_back("access-control-allow-origin", api.cors_origin);
  }
  return response;
}

net::HttpResponse ErrorResponse(const net::HttpRequest& request, const ApiContext& api,
                                const Status& status) {
  net::HttpResponse response = Head(request, api, HttpStatus(status.code()), "application/json");
  if (status.code() == StatusCode::kResourceExhausted ||
      status.code() == StatusCode::kUnavailable) {
    response.headers.emplace_back("retry-after", "1");
  }
  if (status.code() == StatusCode::kUnauthenticated) {
    response.headers.emplace_back("www-authenticate", "Bearer");
  }
  const auto* route = static_cast<const Route*>(request.route);
  response.body = route != nullptr ? route->error_body(status) : ErrorBody(status);
  return response;
}

net::HttpResponse ErrorResponse(const net::HttpRequest& request, const ApiContext& api,
                                int http_status, std::string_view message) {
  net::HttpResponse response = Head(request, api, http_status, "application/json");
  response.body = ErrorBody(http_status, message);
  return response;
}

void ReplyJson(net::Exchange& exchange, const ApiContext& api, int status, std::string body) {
  net::HttpResponse response = Head(exchange, api, status, "application/json");
  response.body = std::move(body);
  exchange.Respond(std::move(response));
}

void ReplyText(net::Exchange& exchange, const ApiContext& api, int status, std::string body) {
  net::HttpResponse response = Head(exchange, api, status, "text/plain; charset=utf-8");
  response.body = std::move(body);
  exchange.Respond(std::move(response));
}

void ReplyError(net::Exchange& exchange, const ApiContext& api, const Status& status) {
  exchange.Respond(ErrorResponse(exchange.request, api, status));
}

}  // namespace portico::api
