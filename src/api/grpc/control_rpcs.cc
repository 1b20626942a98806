#include "api/grpc/control_rpcs.h"

#include "api/grpc/engine_state.h"
#include "service/pause.h"
#include "service/profiling.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

Status Abort(RpcContext&, ShardContext& shard, const pb::AbortRequest& request,
             pb::AbortResponse* response) {
  if (request.rid().empty() && !request.abort_all()) {
    return InvalidArgument("rid", "name a rid, or set abort_all to true");
  }
  AbortEverywhere(shard, request.rid(), request.abort_all());
  response->set_success(true);
  return OkStatus();
}

Status PauseGeneration(RpcContext& context, ShardContext&,
                       const pb::PauseGenerationRequest& request,
                       pb::PauseGenerationResponse* response) {
  PORTICO_ASSIGN_OR_RETURN(const PauseMode mode, ParsePauseMode(request.mode()));
  PORTICO_RETURN_IF_ERROR(PauseEngines(*context.api.models, "", mode));
  context.state.Refresh();
  response->set_message("Generation is paused.");
  return OkStatus();
}

Status ContinueGeneration(RpcContext& context, ShardContext&, const pb::ContinueGenerationRequest&,
                          pb::ContinueGenerationResponse* response) {
  PORTICO_RETURN_IF_ERROR(ContinueEngines(*context.api.models, ""));
  context.state.Refresh();
  response->set_message("Generation goes on.");
  return OkStatus();
}

Status ProfileStart(RpcContext& context, ShardContext&, const pb::StartProfileRequest&,
                    pb::StartProfileResponse*) {
  return StartProfile(*context.api.models);
}

Status ProfileStop(RpcContext& context, ShardContext&, const pb::StopProfileRequest&,
                   pb::StopProfileResponse*) {
  return StopProfile(*context.api.models);
}

}  // namespace

void AddControlRpcs(RpcContext& context) {
  AddUnary(context, "/sglang.runtime.v1.SglangService/Abort", Abort);
  AddUnary(context, "/sglang.runtime.v1.SglangService/FlushCache",
           FlushCache<pb::FlushCacheRequest, pb::FlushCacheResponse>);
  AddUnary(context, "/sglang.runtime.v1.SglangService/PauseGeneration", PauseGeneration);
  AddUnary(context, "/sglang.runtime.v1.SglangService/ContinueGeneration", ContinueGeneration);
  AddUnary(context, "/sglang.runtime.v1.SglangService/StartProfile", ProfileStart);
  AddUnary(context, "/sglang.runtime.v1.SglangService/StopProfile", ProfileStop);
}

}  // namespace portico::api::rpc
