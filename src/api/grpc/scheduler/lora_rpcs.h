// SglangScheduler's LoadLoRAAdapter, UnloadLoRAAdapter and ListLoadedLoRAAdapters.
#pragma once

#include <string>

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddLoraRpcs(RpcContext& context, const std::string& service);

}  // namespace portico::api::rpc
