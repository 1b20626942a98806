// SglangService's facts: HealthCheck, WatchEngineState, GetModelInfo, GetServerInfo, ListModels,
// GetLoad.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddInfoRpcs(RpcContext& context);

}  // namespace portico::api::rpc
