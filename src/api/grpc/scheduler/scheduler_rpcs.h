// sglang.grpc.scheduler.SglangScheduler: the worker protocol of existing gateways.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddSchedulerRpcs(RpcContext& context);

}  // namespace portico::api::rpc
