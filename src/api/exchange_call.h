// Calls that answer over HTTP, and how they start.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "api/call.h"
#include "api/context.h"
#include "api/reply.h"
#include "message/trace_context.h"
#include "net/http/exchange.h"

namespace portico::api {

// Owns its exchange, and goes away with the client.
class ExchangeCall : public Call {
 public:
  ExchangeCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard)
      : exchange_(std::move(exchange)), shard_(shard) {
    exchange_->set_on_closed([this] { Leave(); });
  }

  // Of a call that has not started.
  std::unique_ptr<net::Exchange> TakeExchange() {
    exchange_->set_on_closed(nullptr);
    return std::move(exchange_);
  }

 protected:
  // Which trace the request is part of; not valid(): none.
  TraceContext Trace() const {
    return ParseTraceparent(exchange_->request.Header("traceparent")).value_or(TraceContext{});
  }
  // The answer is a stream of server-sent events.
  void StartEvents() {
    net::HttpResponse head = Head(*exchange_, shard_.api, 200, "text/event-stream");
    head.headers.emplace_back("cache-control", "no-cache");
    exchange_->StartStream(std::move(head));
  }
  // The answer is complete, or nobody waits for it; this call goes away.
  void Leave() { shard_.calls.Remove(this); }

  std::unique_ptr<net::Exchange> exchange_;
  ShardContext& shard_;
};

// Takes the plan's rids and starts the call with it, or answers why not. Of `Started`, an ExchangeCall:
//   Status Start(const ServingModel& model, Plan&& plan);     // on failure nothing runs
template <typename Started, typename Plan>
void Launch(std::unique_ptr<Started> call, const ServingModel& model, Plan&& plan,
            ShardContext& shard) {
  static_assert(std::is_rvalue_reference_v<Plan&&>, "the call takes the plan");
  Status status = TakeRids(shard.api.rids, &plan);
  if (status.ok()) status = call->Start(model, std::move(plan));
  if (status.ok()) {
    shard.calls.Add(std::move(call));
    return;
  }
  const std::unique_ptr<net::Exchange> refused = call->TakeExchange();
  ReplyError(*refused, shard.api, status);
}

}  // namespace portico::api
