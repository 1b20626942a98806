// SglangScheduler's SubscribeKvEvents: what the engine's prefix cache takes in and lets go.
#pragma once

#include <string>

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddKvEventsRpc(RpcContext& context, const std::string& method);

}  // namespace portico::api::rpc
