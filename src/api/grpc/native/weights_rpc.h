// UpdateWeightsFromDisk of SglangService.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddWeightsRpc(RpcContext& context);

}  // namespace portico::api::rpc
