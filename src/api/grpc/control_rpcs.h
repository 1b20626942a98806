// SglangService's control methods: Abort, FlushCache, PauseGeneration, ContinueGeneration,
// StartProfile, StopProfile, UpdateWeightsFromDisk.
#pragma once

#include <string>

#include "api/grpc/rpc.h"
#include "api/sglang/info.h"

namespace portico::api::rpc {

void AddControlRpcs(RpcContext& context);

// FlushCache of either service. A cache in use is an answer, not an error: upstream's message has a
// place for it.
template <typename Request, typename Response>
Status FlushCache(RpcContext& context, ShardContext&, const Request&, Response* response) {
  const Status status = FlushCaches(*context.api.models, "");
  if (!status.ok() && status.code() != StatusCode::kFailedPrecondition) return status;
  response->set_success(status.ok());
  response->set_message(status.ok() ? "Cache flushed." : std::string(MessageOf(status)));
  return OkStatus();
}

}  // namespace portico::api::rpc
