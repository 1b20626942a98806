// The gRPC services on top of the api room: SglangService, SglangScheduler, health, reflection.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "api/context.h"
#include "api/grpc/engine_state.h"
#include "api/grpc/rpc.h"
#include "api/route_table.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "net/grpc/grpc_options.h"

namespace portico::api::rpc {

class GrpcService {
 public:
  // After api.shards is complete. `api` and `routes` outlive it; it outlives the server.
  GrpcService(ApiContext& api, const RouteTable& routes);

  // For the listener; refers to this.
  net::GrpcOptions Options();

 private:
  // Of one method; null until the first call ends so.
  struct MethodMetrics {
    std::array<std::atomic<Counter*>, 17> by_code{};
    std::atomic<Histogram*> seconds{nullptr};
  };

  // UNAUTHENTICATED without the API key, but for health checks.
  Status Admit(const net::GrpcCall& call) const;
  void Count(const net::GrpcCall& call, StatusCode code, Duration took);

  EngineState state_;
  RpcContext context_;
  std::vector<MethodMetrics> metrics_;  // by GrpcMethod::index; the last is of unknown methods
};

}  // namespace portico::api::rpc
