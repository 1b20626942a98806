// A request for vectors, classes or relevance while it is answered: planned texts in, the answer's bytes out. Bytes of
// many vectors are made on the CPU pool.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "api/call.h"
#include "api/context.h"
#include "api/long_answer.h"
#include "api/planning.h"
#include "api/reply.h"
#include "base/log.h"
#include "service/pooling/pooling_run.h"

namespace portico::api {

struct PlannedPooling {
  const ServingModel* model = nullptr;
  PoolingPlan plan;
  // The bytes of the answer. Pure; any thread; at most once.
  absl::AnyInvocable<std::string(PoolingResult)> encode;
};

// How HTTP answers.
struct JsonAnswer {
  using Transport = net::Exchange;
  static void Send(net::Exchange& exchange, ShardContext& shard, StatusOr<std::string> body) {
    if (!body.ok()) return ReplyError(exchange, shard.api, body.status());
    ReplyJson(exchange, shard.api, 200, *std::move(body));
  }
  static void NoteAbort(net::Exchange& exchange) { exchange.NoteAbort(); }
};

template <typename Answer>
class PoolingCall final : public Call, private PoolingRunSink {
 public:
  using Transport = typename Answer::Transport;

  // Submits the plan, or refuses the request.
  static void Start(std::unique_ptr<Transport> transport, ShardContext& shard,
                    PlannedPooling planned) {
    auto call =
        std::make_unique<PoolingCall>(std::move(transport), shard, std::move(planned.encode));
    if (shard.api.log_requests) {
      LogInfo("request: model {}, {} texts to pool", planned.model->id, planned.plan.texts.size());
    }
    Status status = TakeRids(shard.api.rids, &planned.plan);
    if (status.ok()) status = call->Submit(*planned.model, std::move(planned.plan));
    if (status.ok()) {
      shard.calls.Add(std::move(call));
      return;
    }
    call->transport_->set_on_closed(nullptr);
    Answer::Send(*call->transport_, shard, status);
  }

  PoolingCall(std::unique_ptr<Transport> transport, ShardContext& shard,
              absl::AnyInvocable<std::string(PoolingResult)> encode)
      : transport_(std::move(transport)), shard_(shard), encode_(std::move(encode)) {
    transport_->set_on_closed([this](auto&&...) { shard_.calls.Remove(this); });
  }

  void Abort() override {
    Answer::NoteAbort(*transport_);
    run_->Abort();
  }
  void AbortRid(std::string_view name) override {
    if (run_->HasRid(name)) Abort();
  }
  void FreeRids() override {
    if (run_ != nullptr) run_->FreeRids();
  }

 private:
  Status Submit(const ServingModel& model, PoolingPlan plan) {
    PORTICO_ASSIGN_OR_RETURN(run_, PoolingRun::Start(model, shard_.pooling_hub, *shard_.api.metrics,
                                                     std::move(plan), this));
    return OkStatus();
  }

  void OnPooled(StatusOr<PoolingResult> result) override {
    if (!result.ok()) return Finish(result.status());
    const size_t values = result->outputs.size() * result->outputs.front().values.size();
    if (values <= kFewNumbers) return Finish(encode_(*std::move(result)));
    CpuPool::Task task = [encode = std::move(encode_), pooled = *std::move(result), &shard = shard_,
                          own = serial]() mutable {
      auto body = std::make_shared<std::string>(encode(std::move(pooled)));
      shard.shard.Post([body = std::move(body), &shard, own] {
        // The client may have left meanwhile.
        if (Call* call = shard.calls.Find(own)) {
          static_cast<PoolingCall*>(call)->Finish(std::move(*body));
        }
      });
    };
    if (!shard_.api.pool->Submit(std::move(task))) Finish(PoolIsFull());
  }

  void Finish(StatusOr<std::string> body) {
    Answer::Send(*transport_, shard_, std::move(body));
    shard_.calls.Remove(this);
  }

  std::unique_ptr<Transport> transport_;
  ShardContext& shard_;
  absl::AnyInvocable<std::string(PoolingResult)> encode_;
  std::unique_ptr<PoolingRun> run_;
};

}  // namespace portico::api
