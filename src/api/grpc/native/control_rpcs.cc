#include "api/grpc/native/control_rpcs.h"

#include "api/grpc/engine_state.h"
#include "api/sglang/info.h"
#include "service/control/pause.h"
#include "sglang/runtime/v1/sglang.pb.h"
#include "text/utf8.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

Status Abort(RpcContext&, ShardContext& shard, const pb::AbortRequest& request,
             pb::AbortResponse* response) {
  PORTICO_RETURN_IF_ERROR(CheckNumbersKnown(request));
  PORTICO_RETURN_IF_ERROR(CheckRid("rid", request.rid()));
  if (request.rid().empty() && !request.abort_all()) {
    return InvalidArgument("rid", "name a rid, or set abort_all to true");
  }
  AbortEverywhere(shard, request.rid(), request.abort_all());
  response->set_success(true);
  return OkStatus();
}

StatusOr<EngineControl> ReadPause(const pb::PauseGenerationRequest& request) {
  PORTICO_ASSIGN_OR_RETURN(const PauseMode mode, ParsePauseMode(request.mode()));
  return EngineControl(PauseControl{mode});
}

Status Paused(RpcContext& context, const Status& done, pb::PauseGenerationResponse* response) {
  PORTICO_RETURN_IF_ERROR(done);
  context.state.Refresh();
  response->set_message("Generation is paused.");
  return OkStatus();
}

StatusOr<EngineControl> ReadContinue(const pb::ContinueGenerationRequest&) {
  return EngineControl(ContinueControl{});
}

Status Continued(RpcContext& context, const Status& done,
                 pb::ContinueGenerationResponse* response) {
  PORTICO_RETURN_IF_ERROR(done);
  context.state.Refresh();
  response->set_message("Generation continues.");
  return OkStatus();
}

}  // namespace

Status CheckProfile(const std::string& output_dir) {
  if (output_dir.size() <= 4096 && IsValidUtf8(output_dir)) return OkStatus();
  return InvalidArgument("output_dir", "output_dir must be the name of a folder");
}

void AddControlRpcs(RpcContext& context) {
  const std::string service = "/sglang.runtime.v1.SglangService/";
  AddUnary(context, service + "Abort", Abort);
  AddFlushCache<pb::FlushCacheRequest, pb::FlushCacheResponse>(context, service + "FlushCache");
  AddControl(context, service + "PauseGeneration", ReadPause, Paused);
  AddControl(context, service + "ContinueGeneration", ReadContinue, Continued);
  AddProfile<StartProfileControl, pb::StartProfileRequest, pb::StartProfileResponse>(
      context, service + "StartProfile");
  AddProfile<StopProfileControl, pb::StopProfileRequest, pb::StopProfileResponse>(
      context, service + "StopProfile");
}

}  // namespace portico::api::rpc
