// SglangService's control methods: Abort, FlushCache, PauseGeneration, ContinueGeneration,
// StartProfile, StopProfile, UpdateWeightsFromDisk.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddControlRpcs(RpcContext& context);

}  // namespace portico::api::rpc
