// SglangScheduler's Embed: the vector of a list of ids, or a classifier's logits, by which gateways embed, classify and
// rerank.
#pragma once

#include "api/grpc/rpc.h"

namespace portico::api::rpc {

void AddSchedulerEmbed(RpcContext& context, const std::string& method);

}  // namespace portico::api::rpc
