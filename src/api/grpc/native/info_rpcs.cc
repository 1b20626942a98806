#include "api/grpc/native/info_rpcs.h"

#include "api/grpc/health_check.h"
#include "api/grpc/watch_call.h"
#include "api/sglang/info.h"
#include "service/control/load_report.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

std::string ServerInfoText(const ApiContext& api) {
  Json info = ServerInfo(api);
  info.Set("incremental_streaming_output", !api.grpc_cumulative);
  return info.Dump();
}

void FillModelInfo(const ServingModel& model, pb::GetModelInfoResponse* response) {
  response->set_model_path(model.model_path());
  response->set_json_info(ModelInfoBody(model));
}

void SayNativeHealth(bool healthy, pb::HealthCheckResponse* response) {
  response->set_healthy(healthy);
}

Status GetModelInfo(RpcContext& context, ShardContext&, const pb::GetModelInfoRequest&,
                    pb::GetModelInfoResponse* response) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  FillModelInfo(*model, response);
  return OkStatus();
}

Status GetServerInfo(RpcContext& context, ShardContext&, const pb::GetServerInfoRequest&,
                     pb::GetServerInfoResponse* response) {
  response->set_json_info(ServerInfoText(context.api));
  return OkStatus();
}

Status ListModels(RpcContext& context, ShardContext&, const pb::ListModelsRequest&,
                  pb::ListModelsResponse* response) {
  PORTICO_RETURN_IF_ERROR(context.api.models->Find("").status());
  for (const ServingModel* model : context.api.models->models()) {
    pb::ModelCard& card = *response->add_models();
    card.set_id(model->id);
    card.set_root(model->id);
    card.set_max_model_len(model->engine->info().context_length);
  }
  return OkStatus();
}

Status GetLoad(RpcContext& context, ShardContext&, const pb::GetLoadRequest& request,
               pb::GetLoadResponse* response) {
  PORTICO_RETURN_IF_ERROR(context.api.models->Find("").status());
  std::optional<int64_t> rank;
  if (request.has_dp_rank()) rank = request.dp_rank();
  response->set_json_info(
      OldLoadsBody(LoadReports(*context.api.models, context.api.loads, rank, LoadParts{})).Dump());
  return OkStatus();
}

void WatchEngineState(RpcContext& context, CallPtr call, const std::string& bytes) {
  pb::WatchEngineStateRequest request;
  const Status parsed = ParseProtobuf(bytes, &request);
  if (!parsed.ok()) return Refuse(*call, parsed);
  WatchCall::Start(context, std::move(call),
                   [&context](net::GrpcCall& to, const EngineState::Snapshot& state) {
                     pb::EngineStateSnapshot snapshot;
                     snapshot.set_instance_id(context.state.instance_id());
                     snapshot.set_revision(state.revision);
                     snapshot.set_healthy(state.healthy);
                     snapshot.set_is_pause(state.paused);
                     const auto model = context.api.models->Find("");
                     if (model.ok()) FillModelInfo(**model, snapshot.mutable_model_info());
                     snapshot.mutable_server_info()->set_json_info(ServerInfoText(context.api));
                     to.Write(snapshot.SerializeAsString());
                   });
}

}  // namespace

void AddInfoRpcs(RpcContext& context) {
  AddHealthCheck<pb::HealthCheckRequest>(context, "/sglang.runtime.v1.SglangService/HealthCheck",
                                         SayNativeHealth);
  AddUnary(context, "/sglang.runtime.v1.SglangService/GetModelInfo", GetModelInfo);
  AddUnary(context, "/sglang.runtime.v1.SglangService/GetServerInfo", GetServerInfo);
  AddUnary(context, "/sglang.runtime.v1.SglangService/ListModels", ListModels);
  AddUnary(context, "/sglang.runtime.v1.SglangService/GetLoad", GetLoad);
  context.methods.Add("/sglang.runtime.v1.SglangService/WatchEngineState",
                      [&context](CallPtr call, std::string bytes) {
                        WatchEngineState(context, std::move(call), bytes);
                      });
}

}  // namespace portico::api::rpc
