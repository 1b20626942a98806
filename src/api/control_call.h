// Answers to control work, which engines do later.
#pragma once

#include <memory>
#include <utility>

#include "api/context.h"
#include "api/planning.h"
#include "engine/control.h"
#include "net/http/body_budget.h"

namespace portico::api {

// Holds an exchange or a gRPC call until what this returns is called, on any thread; then runs
// `answer(transport, shard, status)` on the shard. A client that leaves meanwhile is not answered; the work goes on, and
// takes the request's share of the budget for bodies until then: what it works with came in the body.
template <typename Transport, typename Answer>
ControlDone AnswerWhenDone(std::unique_ptr<Transport> transport, ShardContext& shard,
                           Answer answer) {
  net::BodyLease lease = std::move(transport->lease());
  const uint64_t pending =
      shard.calls.Add(std::make_unique<PlanningCall<Transport>>(std::move(transport), shard));
  return [pending, &shard, answer = std::move(answer),
          lease = std::move(lease)](Status status) mutable {
    lease.Release();
    shard.shard.Post(
        [pending, &shard, answer = std::move(answer), status = std::move(status)]() mutable {
          Call* call = shard.calls.Find(pending);
          if (call == nullptr) return;
          auto owned = static_cast<PlanningCall<Transport>&>(*call).Take();
          shard.calls.Remove(call);
          answer(std::move(owned), shard, status);
        });
  };
}

}  // namespace portico::api
