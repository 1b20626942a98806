#include "api/grpc/health_service.h"

#include "api/grpc/service_names.h"
#include "api/grpc/watch_call.h"
#include "grpc/health/v1/health.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::grpc::health::v1;

constexpr size_t kMaxQuestion = 64 << 10;

pb::HealthCheckResponse::ServingStatus StatusOf(const EngineState::Snapshot& snapshot) {
  return snapshot.healthy ? pb::HealthCheckResponse::SERVING : pb::HealthCheckResponse::NOT_SERVING;
}

bool Knows(const RpcContext& context, const std::string& service) {
  return service.empty() || context.methods.HasService(service);
}

Status Check(RpcContext& context, ShardContext&, const pb::HealthCheckRequest& request,
             pb::HealthCheckResponse* response) {
  if (!Knows(context, request.service())) {
    return Error(StatusCode::kNotFound, "there is no service " + request.service(), "service");
  }
  response->set_status(StatusOf(context.state.Refresh()));
  return OkStatus();
}

Status List(RpcContext& context, ShardContext&, const pb::HealthListRequest&,
            pb::HealthListResponse* response) {
  const auto status = StatusOf(context.state.Refresh());
  auto& statuses = *response->mutable_statuses();
  statuses[""].set_status(status);
  for (const std::string& service : ServiceNames(context.methods)) {
    statuses[service].set_status(status);
  }
  return OkStatus();
}

void Watch(RpcContext& context, CallPtr call, const std::string& bytes) {
  pb::HealthCheckRequest request;
  const Status parsed = ParseProtobuf(bytes, &request);
  if (!parsed.ok()) return Refuse(*call, parsed);
  // What is unknown may be known to a later server behind this address, so the call stays open.
  const bool known = Knows(context, request.service());
  WatchCall::Start(
      context, std::move(call),
      [known, last = -1](net::GrpcCall& to, const EngineState::Snapshot& snapshot) mutable {
        pb::HealthCheckResponse response;
        response.set_status(known ? StatusOf(snapshot) : pb::HealthCheckResponse::SERVICE_UNKNOWN);
        if (last == response.status()) return;
        last = response.status();
        to.Write(response.SerializeAsString());
      });
}

}  // namespace

void AddHealthService(RpcContext& context) {
  AddUnary(context, "/grpc.health.v1.Health/Check", Check);
  AddUnary(context, "/grpc.health.v1.Health/List", List);
  context.methods.Add("/grpc.health.v1.Health/Watch", [&context](CallPtr call, std::string bytes) {
    Watch(context, std::move(call), bytes);
  });
  for (const char* method : {"Check", "List", "Watch"}) {  // they are open to clients without a key
    context.methods.LimitMessages(std::string("/grpc.health.v1.Health/") + method, kMaxQuestion);
  }
}

}  // namespace portico::api::rpc
