// TextGenerate and Generate of SglangService.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddGenerateRpcs(RpcContext& context);

}  // namespace portico::api::rpc
