// HealthCheck of the services that take tokens: whether the engine can infer. While it has requests it is asked for one
// token, as SGLang's servicer does (api/admin/health_generate.h: within 20 s, and the steps of others count). One that
// has none is believed without, unless the last one that was asked has not answered.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "api/grpc/rpc.h"

namespace portico::api::rpc {

// Calls `done` once, on the call's shard; not if the call ends before.
void CheckInference(RpcContext& context, CallPtr call,
                    absl::AnyInvocable<void(net::GrpcCall& call, bool healthy)> done);

// `say` puts it into the response.
template <typename Request, typename Response>
void AddHealthCheck(RpcContext& context, const std::string& method,
                    void (*say)(bool healthy, Response* response)) {
  context.methods.Add(method, [&context, say](CallPtr call, std::string_view bytes) {
    SmallArena memory;
    const StatusOr<Request*> request = memory.Parse<Request>(bytes);
    if (!request.ok()) return Refuse(*call, request.status());
    CheckInference(context, std::move(call), [say](net::GrpcCall& asked, bool healthy) {
      Response response;
      say(healthy, &response);
      Reply(asked, response);
    });
  });
}

}  // namespace portico::api::rpc
