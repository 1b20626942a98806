// /get_server_info of a gateway that stands before one server and has something to say of that itself.
#pragma once

#include <memory>

#include "api/gateway/gateway_routes.h"

namespace portico::api {

// The worker's answer with the gateway's note as "portico", and without keys; the note alone where no worker answers.
void HandleServerNote(std::unique_ptr<net::Exchange> exchange, const GatewayContext& context,
                      router::GatewayShard& shard);

}  // namespace portico::api
