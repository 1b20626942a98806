#include "api/grpc/service.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "api/authorization.h"
#include "api/grpc/health_service.h"
#include "api/grpc/native/control_rpcs.h"
#include "api/grpc/native/embed_rpcs.h"
#include "api/grpc/native/generate_rpcs.h"
#include "api/grpc/native/info_rpcs.h"
#include "api/grpc/native/json_rpcs.h"
#include "api/grpc/native/token_rpcs.h"
#include "api/grpc/native/weights_rpc.h"
#include "api/grpc/reflection_service.h"
#include "api/grpc/scheduler/scheduler_rpcs.h"

namespace portico::api::rpc {
namespace {

// What needs the admin key over HTTP.
constexpr std::string_view kOperatorRpcs[] = {
    "Abort",        "FlushCache",  "PauseGeneration",       "ContinueGeneration",
    "StartProfile", "StopProfile", "UpdateWeightsFromDisk",
};

}  // namespace

GrpcService::GrpcService(ApiContext& api, const RouteTable& routes)
    : state_(api), context_{api, routes, state_, {}} {
  AddGenerateRpcs(context_);
  AddJsonRpcs(context_);
  AddTokenRpcs(context_);
  AddEmbedRpcs(context_);
  AddInfoRpcs(context_);
  AddControlRpcs(context_);
  AddWeightsRpc(context_);
  AddSchedulerRpcs(context_);
  AddHealthService(context_);
  AddReflectionServices(context_);
  metrics_ = std::vector<MethodMetrics>(context_.methods.all().size() + 1);
  api.on_pause_change = [this] { state_.Refresh(); };
}

net::GrpcOptions GrpcService::Options() {
  net::GrpcOptions options;
  options.methods = &context_.methods;
  options.admit = [this](const net::GrpcCall& call) { return Admit(call); };
  options.on_complete = [this](const net::GrpcCall& call, StatusCode code, size_t, Duration took) {
    Count(call, code, took);
  };
  return options;
}

Status GrpcService::Admit(const net::GrpcCall& call) const {
  if (call.method().starts_with("/grpc.health.v1.Health/")) return OkStatus();
  const std::string_view name = call.method();
  const std::string_view rpc = name.substr(name.rfind('/') + 1);
  const bool operators =
      std::find(std::begin(kOperatorRpcs), std::end(kOperatorRpcs), rpc) != std::end(kOperatorRpcs);
  const std::string_view shown = call.Metadata("authorization");
  const ApiContext& api = context_.api;
  return operators ? CheckAdminKey(shown, api.api_key, api.admin_api_key)
                   : CheckApiKey(shown, api.api_key);
}

// The registry gives the same metric to all who ask, so that a race is harmless.
void GrpcService::Count(const net::GrpcCall& call, StatusCode code, Duration took) {
  const net::GrpcMethod* method = call.registered();
  auto name = [method] { return method != nullptr ? method->name : std::string("unknown"); };
  MethodMetrics& metrics = metrics_[method != nullptr ? method->index : metrics_.size() - 1];
  auto& slot = metrics.by_code[static_cast<size_t>(code) % metrics.by_code.size()];
  Counter* counter = slot.load(std::memory_order_acquire);
  if (counter == nullptr) {
    counter = &context_.api.registry->AddCounter(
        "portico_grpc_requests_total", "gRPC calls that have ended, by method and status.",
        {{"method", name()}, {"code", absl::StatusCodeToString(code)}});
    slot.store(counter, std::memory_order_release);
  }
  counter->Add();
  Histogram* seconds = metrics.seconds.load(std::memory_order_acquire);
  if (seconds == nullptr) {
    seconds = &context_.api.registry->AddHistogram("portico_grpc_request_seconds",
                                                   "Duration of gRPC calls, by method.",
                                                   RequestSecondsBounds(), {{"method", name()}});
    metrics.seconds.store(seconds, std::memory_order_release);
  }
  seconds->Observe(Seconds(took));
}

}  // namespace portico::api::rpc
