#include "api/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>

#include "api/common/error_body.h"
#include "api/refusal_log.h"
#include "api/route_table.h"
#include "message/request_media.h"

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

// Eight characters: the digits of the number, in some order.
uint64_t HexDigits(uint32_t bits) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  // A digit in each byte, then its character: from ten on there are 39 others behind '9'.
  uint64_t digits = bits;
  digits = (digits | digits << 16) & 0x0000FFFF0000FFFF;
  digits = (digits | digits << 8) & 0x00FF00FF00FF00FF;
  digits = (digits | digits << 4) & 0x0F0F0F0F0F0F0F0F;
  const uint64_t letters = (digits + 6 * kOnes) >> 4 & kOnes;
  return digits + '0' * kOnes + ('a' - '0' - 10) * letters;
}

void LogAnswer(const ApiContext& api, const net::HttpRequest& request,
               const net::HttpResponse& response, const Status& status) {
  const auto* route = static_cast<const Route*>(request.route);
  if (route != nullptr && route->access == Access::kOpen) return;  // probes are no requests
  const std::string what =
      fmt::format("{:.16} {:.200} {}", request.method, request.path, response.status);
  LogRefusal(api, what, response.headers.front().second, status);  // Head() begins with the id
}

}  // namespace

std::string NewRequestId(std::string_view prefix) {
  static thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  std::string id(prefix.size() + 32, '0');
  std::copy(prefix.begin(), prefix.end(), id.begin());
  char* at = id.data() + prefix.size();
  for (int half = 0; half < 2; ++half) {
    const uint64_t bits = random();
    for (const uint64_t digits :
         {HexDigits(static_cast<uint32_t>(bits)), HexDigits(static_cast<uint32_t>(bits >> 32))}) {
      std::memcpy(at, &digits, sizeof digits);
      at += sizeof digits;
    }
  }
  return id;
}

std::string NewRequestId() { return NewRequestId({}); }

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
  if (response.status >= 500) {
    std::string reason = ReasonOf(status);
    if (!reason.empty()) response.headers.emplace_back(kFailureHeader, std::move(reason));
  }
  if (api.log_requests) LogAnswer(api, request, response, status);
  const auto* route = static_cast<const Route*>(request.route);
  response.body = route != nullptr ? route->error_body(status) : ErrorBody(status);
  return response;
}

net::HttpResponse ErrorResponse(const net::HttpRequest& request, const ApiContext& api,
                                int http_status, std::string_view message) {
  net::HttpResponse response = Head(request, api, http_status, "application/json");
  if (api.log_requests)
    LogAnswer(api, request, response, InvalidArgument("", std::string(message)));
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
