#include "api/grpc/health_check.h"

#include <algorithm>
#include <memory>

#include "api/admin/health_generate.h"
#include "api/grpc/engine_state.h"

namespace portico::api::rpc {
namespace {

using HealthDone = absl::AnyInvocable<void(net::GrpcCall& call, bool healthy)>;

// The call as the exchange of GET /health_generate.
class HealthExchange final : public net::Exchange {
 public:
  HealthExchange(CallPtr call, EngineState& state, HealthDone done)
      : call_(std::move(call)), state_(state), done_(std::move(done)) {
    call_->set_on_closed([this](const Status&) {
      auto on_closed = std::move(on_closed_);
      on_closed_ = nullptr;
      if (on_closed) on_closed();
    });
  }

  net::Shard& shard() override { return call_->shard(); }
  void Respond(net::HttpResponse response) override {
    const bool healthy = response.status == 200;
    if (healthy) state_.SetDoubted(false);
    done_(*call_, healthy);
  }
  void StartStream(net::HttpResponse) override {}
  void Write(std::string_view) override {}
  void End() override { Cut(); }
  size_t unsent_bytes() const override { return call_->unsent_bytes(); }
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) override {
    call_->CallWhenBelow(bytes, std::move(call));
  }
  void Cut() override { call_->Finish(Error(StatusCode::kInternal, "there is no answer")); }

 private:
  CallPtr call_;
  EngineState& state_;
  HealthDone done_;
};

bool HasRequests(const ModelRegistry& models) {
  const auto all = models.models();
  return std::any_of(all.begin(), all.end(), [](const ServingModel* model) {
    const EngineLoad load = model->engine->load();
    return load.healthy && load.running + load.waiting > 0;
  });
}

}  // namespace

void CheckInference(RpcContext& context, CallPtr call, HealthDone done) {
  const bool healthy = context.state.Refresh().healthy;
  const bool asks = context.state.doubted() || HasRequests(*context.api.models);
  if (!healthy || !asks) return done(*call, healthy);
  context.state.SetDoubted(true);
  ShardContext& shard = context.ShardOf(*call);
  HandleHealthGenerate(
      std::make_unique<HealthExchange>(std::move(call), context.state, std::move(done)), shard);
}

}  // namespace portico::api::rpc
