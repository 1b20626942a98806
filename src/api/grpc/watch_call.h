// A call that gets the state of the engines at once and whenever it changes.
#pragma once

#include <utility>

#include "absl/functional/any_invocable.h"
#include "api/call.h"
#include "api/grpc/engine_state.h"
#include "api/grpc/rpc.h"

namespace portico::api::rpc {

class WatchCall final : public Call, public EngineState::Watcher {
 public:
  // Writes a message for the snapshot.
  using Report =
      absl::AnyInvocable<void(net::GrpcCall& call, const EngineState::Snapshot& snapshot)>;

  static void Start(RpcContext& context, CallPtr call, Report report) {
    ShardContext& shard = context.ShardOf(*call);
    auto watch = std::make_unique<WatchCall>(context, shard, std::move(call), std::move(report));
    WatchCall& started = *watch;
    shard.calls.Add(std::move(watch));
    started.OnState(context.state.Watch(shard, &started));
  }

  WatchCall(RpcContext& context, ShardContext& shard, CallPtr call, Report report)
      : context_(context), shard_(shard), call_(std::move(call)), report_(std::move(report)) {
    call_->set_on_closed([this](const Status&) { Leave(); });
  }
  ~WatchCall() override { context_.state.Unwatch(shard_, this); }

  // An abort is about generations.
  void Abort() override {}

  void OnState(const EngineState::Snapshot& snapshot) override {
    report_(*call_, snapshot);
    if (!snapshot.draining) return;
    // It would hold the drain up for ever.
    Refuse(*call_, Error(StatusCode::kUnavailable, "the server is shutting down"));
    Leave();
  }

 private:
  void Leave() {
    context_.state.Unwatch(shard_, this);
    shard_.calls.Remove(this);
  }

  RpcContext& context_;
  ShardContext& shard_;
  CallPtr call_;
  Report report_;
};

}  // namespace portico::api::rpc
