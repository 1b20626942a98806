#include "api/route_table.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "api/authorization.h"
#include "api/browser_rules.h"
#include "api/reply.h"
#include "api/unknown_path.h"
#include "text/byte_order_mark.h"

namespace portico::api {
namespace {

using net::HttpRequest;
using net::HttpResponse;

// A body that nobody reads may not be longer.
constexpr size_t kIgnoredBody = 64 << 10;

HttpResponse Preflight(const HttpRequest& request, const ApiContext& api,
                       const std::string& methods) {
  HttpResponse response = Head(request, api, 204, "");
  response.headers.emplace_back("access-control-allow-methods", methods);
  std::string_view asked = request.Header("access-control-request-headers");
  response.headers.emplace_back(
      "access-control-allow-headers",
      asked.empty() ? "authorization, content-type, x-api-key" : std::string(asked));
  response.headers.emplace_back("access-control-max-age", "600");
  return response;
}

HttpResponse NotAllowed(const HttpRequest& request, const ApiContext& api,
                        const std::string& methods) {
  HttpResponse response =
      ErrorResponse(request, api, 405,
                    request.method + " is not allowed on " + request.path + "; use " + methods);
  response.headers.emplace_back("allow", methods);
  return response;
}

// "Application/JSON; charset=utf-8" is application/json.
std::string MediaType(std::string_view header) {
  const std::string_view type = header.substr(0, header.find(';'));
  return absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(absl::string_view(type.data(), type.size())));
}

bool Takes(BodyType body, std::string_view header) {
  if (body == BodyType::kNone || header.empty()) return true;
  const std::string_view wanted =
      body == BodyType::kJson ? "application/json" : "multipart/form-data";
  return header == wanted || MediaType(header) == wanted;
}

std::string WrongType(BodyType body, std::string_view header) {
  return body == BodyType::kJson
             ? "the body must be JSON (content-type: application/json), not " + std::string(header)
             : "the body must be a form (content-type: multipart/form-data), not " +
                   std::string(header);
}

// What a body is compressed with that does not say so: no JSON begins like these.
std::string_view UnsaidCoding(std::string_view body) {
  if (body.starts_with("\x1F\x8B")) return "gzip";
  if (body.starts_with("\x28\xB5\x2F\xFD")) return "zstd";
  return {};
}

// RFC 9110, 15.5.16: the answer says which codings are read.
HttpResponse CodingRefused(const HttpRequest& request, const ApiContext& api,
                           std::string_view coding) {
  HttpResponse response =
      ErrorResponse(request, api, 415,
                    fmt::format("the body is encoded ({}), which this server does not decode: send "
                                "it without a content coding",
                                coding));
  response.headers.emplace_back("accept-encoding", "identity");
  return response;
}

// 0 where the length is not declared.
size_t DeclaredBody(const HttpRequest& request) {
  const std::string_view text = request.Header("content-length");
  size_t length = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
  return parsed.ec == std::errc() ? length : 0;
}

bool HasBody(const HttpRequest& request) {
  return !request.body.empty() || DeclaredBody(request) > 0 ||
         !request.Header("transfer-encoding").empty();
}

size_t MaxBody(const Route& route) {
  if (route.max_body_bytes != 0) return route.max_body_bytes;
  return route.body == BodyType::kNone ? kIgnoredBody : std::numeric_limits<size_t>::max();
}

}  // namespace

void RouteTable::Add(Route route) {
  routes_.push_back(std::make_unique<Route>(std::move(route)));
  const Route* added = routes_.back().get();
  if (added->path.ends_with("/*")) {
    below_.push_back(added);
  } else {
    exact_[added->path].push_back(added);
  }
}

void RouteTable::Add(std::string_view method, std::string_view path, Access access,
                     RouteHandler handler, size_t max_body_bytes) {
  Add({.method = std::string(method),
       .path = std::string(path),
       .access = access,
       .body = method == "GET" ? BodyType::kNone : BodyType::kJson,
       .max_body_bytes = max_body_bytes,
       .handler = std::move(handler)});
}

std::vector<const Route*> RouteTable::Find(std::string_view path) const {
  if (const auto found = exact_.find(absl::string_view(path.data(), path.size()));
      found != exact_.end()) {
    return found->second;
  }
  std::vector<const Route*> found;
  for (const Route* route : below_) {
    const std::string_view above = std::string_view(route->path).substr(0, route->path.size() - 1);
    if (path.size() > above.size() && path.starts_with(above)) found.push_back(route);
  }
  return found;
}

std::optional<HttpResponse> RouteTable::Check(HttpRequest& head, const ApiContext& api) const {
  const Route* route = nullptr;
  std::string methods;
  const auto exact = exact_.find(absl::string_view(head.path.data(), head.path.size()));
  const std::vector<const Route*> below =
      exact == exact_.end() ? Find(head.path) : std::vector<const Route*>();
  for (const Route* candidate : exact == exact_.end() ? below : exact->second) {
    const bool as_get = head.method == "HEAD" && candidate->method == "GET";
    if (candidate->method == head.method || as_get) route = candidate;
    if (!methods.empty()) methods += ", ";
    methods += candidate->method;
  }
  if (methods.empty()) {
    const auto has = [this](std::string_view path) { return !Find(path).empty(); };
    return ErrorResponse(head, api,
                         Error(StatusCode::kNotFound, UnknownPath(head.method, head.path, has)));
  }
  if (route == nullptr) {
    const bool asks = head.method == "OPTIONS" && !api.cors_origin.empty();
    return asks ? Preflight(head, api, methods) : NotAllowed(head, api, methods);
  }
  head.route = route;
  if (route->access != Access::kOpen) {
    const Status key = route->access == Access::kAdmin
                           ? CheckAdminKey(head, api.api_key, api.admin_api_key)
                           : CheckApiKey(head, api.api_key);
    if (!key.ok()) return ErrorResponse(head, api, key);
  }
  const std::string_view type = head.Header("content-type");
  if (!Takes(route->body, type) && HasBody(head)) {
    return ErrorResponse(head, api, 415, WrongType(route->body, type));
  }
  if (const std::string_view coding = head.BodyCoding();
      !coding.empty() && route->body != BodyType::kNone && HasBody(head)) {
    return CodingRefused(head, api, fmt::format("content-encoding: {:.64}", coding));
  }
  if (const size_t most = MaxBody(*route); DeclaredBody(head) > most) {
    return ErrorResponse(
        head, api, 413,
        "the body of " + head.path + " may have at most " + std::to_string(most) + " bytes");
  }
  return std::nullopt;
}

net::HeadVerdict RouteTable::Admit(HttpRequest& head, const ApiContext& api) const {
  net::HeadVerdict verdict;
  if (const Status host = CheckHost(head, api.browser); !host.ok()) {
    verdict.refusal = ErrorResponse(head, api, host);
    return verdict;
  }
  verdict.refusal = Check(head, api);
  if (verdict.refusal) return verdict;
  const Route& route = *static_cast<const Route*>(head.route);
  if (route.access != Access::kOpen) {
    // A gateway asks one that is silent whether it infers: what a server that drains still computes is not to be taken
    // from it.
    if (head.late && head.path != "/health_generate") {
      verdict.refusal =
          ErrorResponse(head, api, Error(StatusCode::kUnavailable, "the server is draining"));
      return verdict;
    }
    if (const Status page = CheckPage(head, {&api.cors_origin, 1}); !page.ok()) {
      verdict.refusal = ErrorResponse(head, api, page);
      return verdict;
    }
  }
  verdict.max_body_bytes = MaxBody(route);
  return verdict;
}

void RouteTable::Dispatch(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) const {
  if (exchange->request.route == nullptr) {
    if (auto refusal = Check(exchange->request, shard.api)) {
      return exchange->Respond(*std::move(refusal));
    }
  }
  const Route& route = *static_cast<const Route*>(exchange->request.route);
  if (route.body == BodyType::kJson) {
    if (const std::string_view coding = UnsaidCoding(exchange->request.body); !coding.empty()) {
      return exchange->Respond(CodingRefused(exchange->request, shard.api, coding));
    }
    const Status mark = DropByteOrderMark(&exchange->request.body);
    if (!mark.ok()) return ReplyError(*exchange, shard.api, mark);
  }
  route.handler(std::move(exchange), shard);
}

}  // namespace portico::api
