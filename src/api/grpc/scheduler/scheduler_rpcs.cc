#include "api/grpc/scheduler/scheduler_rpcs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <utility>

#include "api/grpc/engine_state.h"
#include "api/grpc/health_check.h"
#include "api/grpc/native/control_rpcs.h"
#include "api/grpc/scheduler/decode_scheduler.h"
#include "api/grpc/scheduler/json_struct.h"
#include "api/grpc/scheduler/kv_events_rpc.h"
#include "api/grpc/scheduler/lora_rpcs.h"
#include "api/grpc/scheduler/scheduler_embed.h"
#include "api/grpc/scheduler/scheduler_messages.h"
#include "api/grpc/scheduler/tokenizer_call.h"
#include "api/grpc/stream_call.h"
#include "api/model_facts.h"
#include "api/reply.h"
#include "api/sglang/info.h"
#include "base/log.h"
#include "service/control/load_report.h"
#include "service/model_task.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::grpc::scheduler;
namespace common = ::smg::grpc::common;

struct PlannedIds {
  const ServingModel* model = nullptr;
  NativePlan plan;
};

StatusOr<PlannedIds> Prepare(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(auto* request, memory.Parse<pb::GenerateRequest>(bytes));
  PORTICO_ASSIGN_OR_RETURN(NativeGenerateRequest native, DecodeScheduler(*request));
  PlannedIds planned;
  PORTICO_ASSIGN_OR_RETURN(planned.model, FindAble(*context.api.models, "", CheckGenerates));
  PORTICO_ASSIGN_OR_RETURN(planned.plan, PlanNative(*planned.model, native, NewRequestId));
  return planned;
}

void Generate(RpcContext& context, CallPtr call, PlannedIds planned) {
  SchedulerMessages messages(planned.plan);
  StreamRpc<SchedulerMessages>::Start(context, std::move(call), *planned.model,
                                      std::move(planned.plan), std::move(messages));
}

void SaySchedulerHealth(bool healthy, pb::HealthCheckResponse* response) {
  response->set_healthy(healthy);
  response->set_message(healthy ? "ready" : "loading, draining or failed");
}

Status Abort(RpcContext&, ShardContext& shard, const pb::AbortRequest& request,
             pb::AbortResponse* response) {
  PORTICO_RETURN_IF_ERROR(CheckNumbersKnown(request));
  if (request.request_id().empty()) {
    return InvalidArgument("request_id", "request_id is required");
  }
  PORTICO_RETURN_IF_ERROR(CheckRid("request_id", request.request_id()));
  if (!request.reason().empty()) {
    LogDebug("abort of {}: {:.200}", request.request_id(), request.reason());
  }
  AbortEverywhere(shard, request.request_id(), /*all=*/false);
  response->set_success(true);
  return OkStatus();
}

Status GetModelInfo(RpcContext& context, ShardContext&, const pb::GetModelInfoRequest&,
                    pb::GetModelInfoResponse* response) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  const EngineInfo& engine = model->engine->info();
  response->set_model_path(model->model_path());
  response->set_tokenizer_path(model->tokenizer_path);
  response->set_is_generation(engine.task == ModelTask::kGenerate);
  response->set_id2label_json(LabelsAsJson(engine));
  response->set_num_labels(static_cast<int32_t>(engine.labels.size()));
  response->set_weight_version(model->weight_version());
  response->set_served_model_name(model->id);
  response->set_max_context_length(engine.context_length);
  response->set_vocab_size(engine.vocab_size);
  response->set_model_type(engine.architecture);
  response->set_supports_vision(engine.can.Takes(MediaKind::kImage));
  for (TokenId id : model->end_token_ids) response->add_eos_token_ids(id);
  response->set_max_req_input_len(engine.context_length - 1);
  if (!engine.architecture.empty()) response->add_architectures(engine.architecture);
  return OkStatus();
}

Status GetServerInfo(RpcContext& context, ShardContext&, const pb::GetServerInfoRequest&,
                     pb::GetServerInfoResponse* response) {
  const Json info = ServerInfo(context.api);
  FillStruct(info, response->mutable_server_args());
  int64_t active = 0;
  for (const ServingModel* model : context.api.models->models()) {
    const EngineLoad load = model->engine->load();
    active += load.running + load.waiting;
  }
  const uint64_t started = context.state.instance_id();
  response->set_active_requests(static_cast<int32_t>(active));
  response->set_is_paused(context.state.Refresh().paused);
  response->set_uptime_seconds(static_cast<double>(UnixSeconds()) -
                               static_cast<double>(started) / 1e9);
  response->set_sglang_version(PORTICO_VERSION);
  response->set_server_type("portico");
  response->mutable_start_time()->set_seconds(static_cast<int64_t>(started / 1'000'000'000));
  response->set_max_total_num_tokens(static_cast<int32_t>(info.GetInt("max_total_num_tokens", 0)));
  return OkStatus();
}

void FillLoad(const RankReport& from, const LoadParts& parts, pb::SchedulerLoad* out) {
  const EngineLoad& load = from.load;
  auto ratio = [](double part, double whole) { return whole > 0 ? part / whole : 0.0; };
  out->set_dp_rank(static_cast<int32_t>(from.rank));
  out->set_num_running_reqs(static_cast<int32_t>(load.running));
  out->set_num_waiting_reqs(static_cast<int32_t>(load.waiting));
  out->set_num_total_reqs(static_cast<int32_t>(load.running + load.waiting));
  out->set_num_used_tokens(static_cast<int32_t>(load.kv_cells_used));
  out->set_max_total_num_tokens(static_cast<int32_t>(from.max_total_tokens));
  out->set_token_usage(
      ratio(static_cast<double>(load.kv_cells_used), static_cast<double>(load.kv_cells_total)));
  out->set_gen_throughput(from.tokens_per_second);
  out->set_cache_hit_rate(from.cache_hit_rate);
  out->set_utilization(ratio(static_cast<double>(load.running), from.max_running_requests));
  out->set_max_running_requests(from.max_running_requests);
  if (parts.queues) {
    pb::QueueMetrics& queues = *out->mutable_queues();
    (load.paused ? queues.set_paused(static_cast<int32_t>(load.waiting))
                 : queues.set_waiting(static_cast<int32_t>(load.waiting)));
    queues.set_retracted(static_cast<int32_t>(load.retracted));
  }
  if (parts.memory) {
    out->mutable_memory()->set_token_capacity(static_cast<int32_t>(from.max_total_tokens));
  }
}

Status GetLoads(RpcContext& context, ShardContext&, const pb::GetLoadsRequest& request,
                pb::GetLoadsResponse* response) {
  PORTICO_RETURN_IF_ERROR(context.api.models->Find("").status());
  std::string include;
  for (const std::string& part : request.include()) {
    if (!include.empty()) include.push_back(',');
    include += part;
  }
  PORTICO_ASSIGN_OR_RETURN(const LoadParts parts, LoadParts::Parse(include));
  std::optional<int64_t> rank;
  if (request.has_dp_rank()) rank = request.dp_rank();
  const auto reports = RankReports(*context.api.models, context.api.loads, std::nullopt);
  pb::AggregateMetrics& sum = *response->mutable_aggregate();
  double usage = 0;
  for (const RankReport& report : reports) {
    if (rank && *rank != report.rank) continue;
    pb::SchedulerLoad& load = *response->add_loads();
    FillLoad(report, parts, &load);
    sum.set_total_running_reqs(sum.total_running_reqs() + load.num_running_reqs());
    sum.set_total_waiting_reqs(sum.total_waiting_reqs() + load.num_waiting_reqs());
    sum.set_total_reqs(sum.total_reqs() + load.num_total_reqs());
    sum.set_avg_throughput(sum.avg_throughput() + load.gen_throughput());
    sum.set_avg_utilization(sum.avg_utilization() + load.utilization());
    usage += load.token_usage();
  }
  const double ranks = std::max(1, response->loads_size());
  sum.set_avg_token_usage(usage / ranks);
  sum.set_avg_throughput(sum.avg_throughput() / ranks);
  sum.set_avg_utilization(sum.avg_utilization() / ranks);
  response->set_timestamp(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(UnixSeconds())));
  response->set_version(PORTICO_VERSION);
  response->set_dp_rank_count(static_cast<int32_t>(reports.size()));
  return OkStatus();
}

}  // namespace

void AddSchedulerRpcs(RpcContext& context) {
  const std::string service = "/sglang.grpc.scheduler.SglangScheduler/";
  AddPlanned(context, service + "Generate", Prepare, Generate);
  AddSchedulerEmbed(context, service + "Embed");
  AddHealthCheck<pb::HealthCheckRequest>(context, service + "HealthCheck", SaySchedulerHealth);
  AddUnary(context, service + "Abort", Abort);
  AddUnary(context, service + "GetModelInfo", GetModelInfo);
  AddUnary(context, service + "GetServerInfo", GetServerInfo);
  AddUnary(context, service + "GetLoads", GetLoads);
  AddFlushCache<common::FlushCacheRequest, common::FlushCacheResponse>(context,
                                                                       service + "FlushCache");
  AddProfile<StartProfileControl, common::StartProfileRequest, common::ProfileResponse>(
      context, service + "StartProfile");
  AddProfile<StopProfileControl, common::StopProfileRequest, common::ProfileResponse>(
      context, service + "StopProfile");
  AddKvEventsRpc(context, service + "SubscribeKvEvents");
  AddLoraRpcs(context, service);
  AddTokenizerCall(context, service + "GetTokenizer");
}

}  // namespace portico::api::rpc
