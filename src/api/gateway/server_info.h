// /get_server_info and /server_info of a gateway.
#pragma once

#include <memory>

#include "api/gateway/gateway_routes.h"

namespace portico::api {

// Of a request for it.
bool IsServerInfo(const net::HttpRequest& request);

// What the first worker that answers says of itself, without keys, and without addresses unless the gateway shows its
// workers. A gateway that has a note of its own stands before one server: its answer is the server's with the note as
// "portico", or the note alone.
void HandleServerInfo(std::unique_ptr<net::Exchange> exchange, const GatewayContext& context,
                      router::GatewayShard& shard);

}  // namespace portico::api
