// Profiles of a gateway: its own recorder and, under the same run_id, that of its workers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http/exchange.h"
#include "router/gateway.h"

namespace portico::api {

bool IsProfilePath(std::string_view path);

// Answers what the recorder here says, with what each worker has answered in `workers`; a worker
// that has no such route spoils nothing. Workers without a key of their own get `authorization`. Bodies
// with SGLang's fields alone do not concern the gateway: *passed_on is true then, and every worker shall be asked.
void HandleGatewayProfile(std::unique_ptr<net::Exchange>* exchange, std::string authorization,
                          router::GatewayShard& shard, bool* passed_on);

}  // namespace portico::api
