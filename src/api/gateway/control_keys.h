// Keys of those who may control a gateway, beside the key of its clients.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::api {

struct ControlKey {
  std::string id;
  std::string name;
  std::string key;  // secret
  bool admin = false;
};

// "id:name:role:key", the role admin or user; the key may have colons. Errors do not show the key.
StatusOr<ControlKey> ParseControlKey(std::string_view text);

// Who may send this control: with `keys` the one whose key it shows, an admin or, to read, a user; else
// who shows `api_key`. UNAUTHENTICATED or PERMISSION_DENIED. Returns the id, or "" without `keys`.
StatusOr<std::string> CheckControl(const net::HttpRequest& request,
                                   const std::vector<ControlKey>& keys, const std::string& api_key);

// The `authorization` with which a request is sent on to workers that have no key of their own: what it shows, its
// `x-api-key` as a bearer's. What shows one of `kept` (GatewayOptions::kept_keys) counts for nothing; empty: nothing is left.
std::string KeyForWorkers(const net::HttpRequest& request, std::span<const std::string> kept);

}  // namespace portico::api
