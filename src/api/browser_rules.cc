#include "api/browser_rules.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace portico::api {
namespace {

// "[::1]:80" and "localhost:80" without the port, in lower case.
std::string HostOnly(std::string_view authority) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  // An IPv6 address without brackets has several colons and no port.
  const bool bare = bracket == std::string_view::npos && authority.find(':') != colon;
  std::string host(has_port && !bare ? authority.substr(0, colon) : authority);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host.ends_with('.')) host.pop_back();
  absl::AsciiStrToLower(&host);
  return host;
}

bool IsThisMachine(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  // 127.0.0.0/8, written out: a name may begin with digits.
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

// What most clients send, whose host is IsThisMachine()'s: it need not be copied.
bool IsPlainLoopback(std::string_view authority) {
  for (const std::string_view name : {"127.0.0.1", "localhost"}) {
    if (!authority.starts_with(name)) continue;
    const std::string_view rest = authority.substr(name.size());
    return rest.empty() ||
           (rest.front() == ':' &&
            std::all_of(rest.begin() + 1, rest.end(), [](char c) { return c >= '0' && c <= '9'; }));
  }
  return false;
}

Status Denied(std::string message) {
  return Error(StatusCode::kPermissionDenied, std::move(message));
}

}  // namespace

BrowserRules MakeBrowserRules(const std::string& address, std::string_view allowed_hosts) {
  BrowserRules rules;
  rules.check_host = IsThisMachine(HostOnly(address));
  for (const absl::string_view name :
       absl::StrSplit(absl::string_view(allowed_hosts.data(), allowed_hosts.size()),
                      absl::ByAnyChar(", "), absl::SkipEmpty())) {
    rules.allowed_hosts.push_back(HostOnly({name.data(), name.size()}));
  }
  return rules;
}

Status CheckHost(const net::HttpRequest& head, const BrowserRules& rules) {
  if (!rules.check_host) return OkStatus();
  const std::string_view authority = head.Header("host");
  if (authority.empty()) return OkStatus();  // HTTP/1.0; browsers send it
  if (IsPlainLoopback(authority)) return OkStatus();
  const std::string host = HostOnly(authority);
  const auto& allowed = rules.allowed_hosts;
  if (IsThisMachine(host) || std::find(allowed.begin(), allowed.end(), host) != allowed.end() ||
      std::find(allowed.begin(), allowed.end(), "*") != allowed.end()) {
    return OkStatus();
  }
  return Denied("this server listens on the loopback address and does not answer to the host `" +
                host + "`; --allowed-host names others");
}

Status CheckPage(const net::HttpRequest& head, std::span<const std::string> cors_origins) {
  const auto allows = [cors_origins](std::string_view origin) {
    return std::find(cors_origins.begin(), cors_origins.end(), origin) != cors_origins.end();
  };
  const std::string_view origin = head.Header("origin");
  const std::string_view site = head.Header("sec-fetch-site");
  if (site == "same-origin" || allows("*")) return OkStatus();
  if (origin.empty()) {
    if (site.empty() || site == "none") return OkStatus();
    return Denied("web pages of other origins may not call this server: CORS does not allow it");
  }
  if (allows(origin)) return OkStatus();
  const size_t scheme = origin.find("://");
  if (scheme != std::string_view::npos && origin.substr(scheme + 3) == head.Header("host")) {
    return OkStatus();
  }
  return Denied("web pages of the origin `" + std::string(origin) +
                "` may not call this server: CORS does not allow it");
}

}  // namespace portico::api
