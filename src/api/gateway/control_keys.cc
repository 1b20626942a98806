#include "api/gateway/control_keys.h"

#include <fmt/format.h>

#include <array>

#include "api/authorization.h"
#include "api/gateway/worker_paths.h"
#include "router/proxy/forward_head.h"

namespace portico::api {

StatusOr<ControlKey> ParseControlKey(std::string_view text) {
  std::array<std::string, 3> parts;  // id, name, role
  for (std::string& part : parts) {
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      return Error(StatusCode::kInvalidArgument, "a key must be id:name:role:key");
    }
    part = std::string(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  const auto& [id, name, role] = parts;
  if (text.empty()) return Error(StatusCode::kInvalidArgument, "the key of `" + id + "` is empty");
  if (role != "admin" && role != "user") {
    return Error(StatusCode::kInvalidArgument,
                 "the role of `" + id + "` is not admin or user, but `" + role + "`");
  }
  return ControlKey{.id = id, .name = name, .key = std::string(text), .admin = role == "admin"};
}

StatusOr<std::string> CheckControl(const net::HttpRequest& request,
                                   const std::vector<ControlKey>& keys,
                                   const std::string& api_key) {
  if (keys.empty()) {
    PORTICO_RETURN_IF_ERROR(CheckApiKey(request, api_key));
    return "";
  }
  const ControlKey* who = nullptr;
  for (const ControlKey& key : keys) {
    const bool shown = CheckApiKey(request, key.key).ok();
    if (shown && (who == nullptr || !who->admin)) who = &key;
  }
  if (who == nullptr) {
    return Error(StatusCode::kUnauthenticated, "this needs a key of --control-plane-api-keys", {},
                 "invalid_api_key");
  }
  const bool gets = request.method == "GET" || request.method == "HEAD";
  if (!who->admin && !(gets && GetOnlyReads(request.path))) {
    return Error(StatusCode::kPermissionDenied, "this needs a key whose role is admin");
  }
  return who->id;
}

std::string KeyForWorkers(const net::HttpRequest& request, std::span<const std::string> kept) {
  const auto shown = [&](std::string_view name) {
    const std::string_view value = request.Header(name);
    return router::ShowsKey(name, value, kept) ? std::string_view() : value;
  };
  const std::string_view authorization = shown("authorization");
  if (!authorization.empty()) return std::string(authorization);
  const std::string_view key = shown("x-api-key");
  return key.empty() ? std::string() : fmt::format("Bearer {}", key);
}

}  // namespace portico::api
