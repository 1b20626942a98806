// SglangService's control methods: Abort, FlushCache, PauseGeneration, ContinueGeneration,
// StartProfile, StopProfile, UpdateWeightsFromDisk.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "api/control_call.h"
#include "api/flush_call.h"
#include "api/grpc/field_checks.h"
#include "api/grpc/rpc.h"
#include "service/control/each_engine.h"

namespace portico::api::rpc {

void AddControlRpcs(RpcContext& context);

// A unary method that asks something of all engines, and is answered when they have done it.
//   StatusOr<EngineControl> read(const Request& request);
//   Status answer(RpcContext& context, const Status& done, Response* response);    // what is not OK ends the call
template <typename Request, typename Response>
void AddControl(RpcContext& context, std::string_view method,
                StatusOr<EngineControl> (*read)(const Request& request),
                Status (*answer)(RpcContext& context, const Status& done, Response* response)) {
  context.methods.Add(
      std::string(method), [&context, read, answer](CallPtr call, std::string bytes) {
        SmallArena memory;
        const StatusOr<Request*> request = memory.Parse<Request>(bytes);
        if (!request.ok()) return Refuse(*call, context.api, request.status());
        const Status known = CheckNumbersKnown(**request);
        if (!known.ok()) return Refuse(*call, context.api, known);
        const StatusOr<EngineControl> control = read(**request);
        if (!control.ok()) return Refuse(*call, context.api, control.status());
        auto reply = [&context, answer](CallPtr owned, ShardContext&, const Status& done) {
          SmallArena space;
          Response* response = space.Make<Response>();
          const Status status = answer(context, done, response);
          if (!status.ok()) return Refuse(*owned, context.api, status);
          Reply(*owned, *response);
        };
        ShardContext& shard = context.ShardOf(*call);
        ControlEngines(*context.api.models, "", *control, Clock::now() + kControlPatience,
                       AnswerWhenDone(std::move(call), shard, std::move(reply)));
      });
}

// INVALID_ARGUMENT for a folder whose name is no text.
Status CheckProfile(const std::string& output_dir);

// FlushCache of either service. A cache in use is an answer, not an error: upstream's message has a
// place for it. One of the two has a timeout.
template <typename Request, typename Response>
void AddFlushCache(RpcContext& context, std::string_view method) {
  context.methods.Add(std::string(method), [&context](CallPtr call, std::string bytes) {
    SmallArena memory;
    const StatusOr<Request*> request = memory.Parse<Request>(bytes);
    Status status = request.status();
    if (status.ok()) status = CheckNumbersKnown(**request);
    double timeout = 0;
    if constexpr (requires(const Request& r) { r.timeout_s(); }) {
      if (status.ok()) timeout = (*request)->timeout_s();
      if (status.ok()) status = CheckNumber("timeout_s", timeout, kFlushTimeout);
    }
    if (!status.ok()) return Refuse(*call, context.api, status);
    auto answer = [](CallPtr owned, ShardContext& on, const Status& done) {
      if (!done.ok() && done.code() != StatusCode::kFailedPrecondition) {
        return Refuse(*owned, on.api, done);
      }
      Response response;
      response.set_success(done.ok());
      response.set_message(done.ok() ? "Cache flushed." : std::string(MessageOf(done)));
      Reply(*owned, response);
    };
    ShardContext& shard = context.ShardOf(*call);
    const auto patience =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout));
    FlushCall<net::GrpcCall, decltype(answer)>::Start(std::move(call), shard, "", patience, answer);
  });
}

// What both services' messages say of a profile: one has the folder alone.
template <typename Request>
StartProfileControl ProfileOf(const Request& request) {
  StartProfileControl control;
  control.output_dir = request.output_dir();
  if constexpr (requires { request.profile_by_stage(); }) {
    if (request.has_start_step()) control.start_step = request.start_step();
    if (request.has_num_steps()) control.num_steps = request.num_steps();
    control.activities.assign(request.activities().begin(), request.activities().end());
    if (request.has_with_stack()) control.with_stack = request.with_stack();
    if (request.has_record_shapes()) control.record_shapes = request.record_shapes();
    control.by_stage = request.profile_by_stage();
  }
  return control;
}

// StartProfile or StopProfile of either service.
template <typename Control, typename Request, typename Response>
void AddProfile(RpcContext& context, std::string_view method) {
  AddControl<Request, Response>(
      context, method,
      [](const Request& request) -> StatusOr<EngineControl> {
        if constexpr (std::is_same_v<Control, StartProfileControl>) {
          PORTICO_RETURN_IF_ERROR(CheckProfile(request.output_dir()));
          return EngineControl(ProfileOf(request));
        } else {
          return EngineControl(Control{});
        }
      },
      [](RpcContext&, const Status& done, Response* response) {
        if constexpr (requires { response->set_success(true); }) response->set_success(done.ok());
        return done;
      });
}

}  // namespace portico::api::rpc
