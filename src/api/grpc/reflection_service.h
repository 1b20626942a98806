// grpc.reflection.v1 and v1alpha: what grpcurl and its like ask to call methods without protos.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddReflectionServices(RpcContext& context);

}  // namespace portico::api::rpc
