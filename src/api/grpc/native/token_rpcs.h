// Tokenize and Detokenize of SglangService.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddTokenRpcs(RpcContext& context);

}  // namespace portico::api::rpc
