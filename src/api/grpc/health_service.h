// grpc.health.v1.Health: Check, List and Watch, for the server ("") and each of its services.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

inline constexpr std::string_view kHealthService = "grpc.health.v1.Health";

void AddHealthService(RpcContext& context);

}  // namespace portico::api::rpc
