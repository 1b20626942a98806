// TextGenerate and Generate of SglangService.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddGenerateRpcs(RpcContext& context);

// How the caller wants its stream: metadata x-portico-stream (delta, cumulative), else the server's
// way.
StatusOr<bool> WantsCumulative(const net::GrpcCall& call, const ApiContext& api);

}  // namespace portico::api::rpc
