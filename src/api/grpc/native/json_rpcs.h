// The methods of SglangService that pass JSON through to the HTTP routes.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddJsonRpcs(RpcContext& context);

}  // namespace portico::api::rpc
