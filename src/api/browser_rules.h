// What web pages may do to a server that the browser's user can reach: nothing, unless CORS allows their origin. A
// page can send simple requests to any address (https://fetch.spec.whatwg.org, "simple" methods and headers), and by
// rebinding its own name to 127.0.0.1 read the answers too.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::api {

struct BrowserRules {
  // The server listens on this machine alone: requests must name it as this machine or as one of `allowed_hosts`.
  bool check_host = false;
  std::vector<std::string> allowed_hosts;  // names without ports
};

// Of a server that listens on `address`.
BrowserRules MakeBrowserRules(const std::string& address, std::string_view allowed_hosts);

// PERMISSION_DENIED if the request names a host that is not this one.
Status CheckHost(const net::HttpRequest& head, const BrowserRules& rules);

// PERMISSION_DENIED if a page of another origin than the server's sends the request, and `cors_origins` does not name that
// one ("*": any; empty strings name none). A browser's own word that the page is the server's counts where a proxy has
// changed the host.
Status CheckPage(const net::HttpRequest& head, std::span<const std::string> cors_origins);

}  // namespace portico::api
