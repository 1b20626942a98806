// The gRPC services on top of the api room: SglangService, SglangScheduler, health, reflection.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "api/context.h"
#include "api/grpc/engine_state.h"
#include "api/grpc/rpc.h"
#include "api/router.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "net/grpc_options.h"

namespace portico::api::rpc {

class GrpcService {
 public:
  // After api.shards is complete. `api` and `router` outlive it; it outlives the server.
  GrpcService(ApiContext& api, const Router& router);

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
