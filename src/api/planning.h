// What every text route does between its body and its answer: planning, on the shard or, where it is long, on the CPU pool;
// then it waits for media and grammars. A client that leaves ends the plan before its next step, and every wait.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "api/call.h"
#include "api/constrained.h"
#include "api/context.h"
#include "api/media.h"
#include "api/planning_call.h"
#include "api/reply.h"
#include "base/cpu_pool.h"
#include "base/status.h"
#include "net/http/body_budget.h"
#include "net/http/exchange.h"
#include "net/loop/out_of_memory.h"
#include "service/model_registry.h"
#include "service/plan/step_gate.h"

namespace portico::api {

// What planning may use.
struct PlanContext {
  const ApiContext& api;
  CpuPool* helpers = nullptr;  // share the work; null on a shard, which must not wait for them
  StepGate* gate = nullptr;    // asked before each long step
};

// Bodies above this are parsed, rendered and tokenized off the shard: at 100 MB/s they would hold
// every other stream of the shard up for more than half a millisecond.
inline constexpr size_t kLongBody = 64 << 10;

// What is too long for a shard is not done there when the pool is full.
inline Status PoolIsFull() {
  return Error(StatusCode::kUnavailable, "too many long requests at once; try again");
}

// How long the request takes its share of the budget for bodies.
enum class LeaseEnds {
  kPlanned,  // the plan is small, or counted elsewhere; one with media takes it along (LeaseMedia)
  kTaken,    // the plan holds as much as the body: the answer finds the lease in its transport
};

// A request on its way through the pool. It takes its share of the budget at least until it is planned, also where the
// client leaves before.
struct PooledRequest {
  std::string body;
  net::BodyLease lease;
  std::weak_ptr<void> wanted;  // gone: the client has left
  std::atomic<uint64_t> call = 0;
};

// `prepare(bytes, gate)`, or `prepare(bytes)` of what is one step.
template <typename Prepare>
auto PrepareWithin(const Prepare& prepare, const std::string& bytes, StepGate& gate) {
  if constexpr (std::is_invocable_v<const Prepare&, const std::string&, StepGate&>) {
    return prepare(bytes, gate);
  } else {
    return prepare(bytes);
  }
}

// If memory runs out, UNAVAILABLE, where the plan can be an error.
template <typename Prepare>
auto PrepareInMemory(const Prepare& prepare, const std::string& bytes, StepGate& gate)
    -> decltype(PrepareWithin(prepare, bytes, gate)) {
  if constexpr (std::is_constructible_v<decltype(PrepareWithin(prepare, bytes, gate)), Status>) {
    try {
      return PrepareWithin(prepare, bytes, gate);
    } catch (const std::bad_alloc&) {
      return Error(StatusCode::kUnavailable, std::string(net::kOutOfMemory));
    }
  } else {
    return PrepareWithin(prepare, bytes, gate);
  }
}

// Runs `prepare(bytes)` on the CPU pool and then `answer(transport, shard, what it gave)` on the
// shard. `prepare` is pure; it does not run where the client has left before its turn, and one that takes a gate,
// `prepare(bytes, gate)`, ends at the next step of a plan whose client leaves. False: the pool is full, and transport and bytes
// are untouched.
template <typename Transport, typename Prepare, typename Answer>
bool PlanOnPool(std::unique_ptr<Transport>& transport, std::string& bytes, ShardContext& shard,
                Prepare prepare, Answer answer, LeaseEnds ends = LeaseEnds::kPlanned) {
  auto request = std::make_shared<PooledRequest>();
  const auto wanted = std::make_shared<char>();
  request->body = std::move(bytes);
  request->lease = std::move(transport->lease());
  request->wanted = wanted;
  CpuPool::Task task = [request, &shard, prepare, answer, ends] {
    if (request->wanted.expired()) return;
    StepGate gate = StepGate::OnPool(request->wanted);
    using Planned = decltype(PrepareInMemory(prepare, request->body, gate));
    auto planned = std::make_shared<Planned>(PrepareInMemory(prepare, request->body, gate));
    std::string().swap(request->body);
    if (ends == LeaseEnds::kPlanned && !HoldsMedia(*planned)) request->lease.Release();
    shard.shard.Post([planned, request, &shard, answer] {
      EndPlanning<Transport>(shard, request->call, [&](std::unique_ptr<Transport> owned) {
        owned->lease() = std::move(request->lease);
        net::HandleInMemory([&] { answer(std::move(owned), shard, std::move(*planned)); });
      });
    });
  };
  if (!shard.api.pool->Submit(std::move(task))) {
    bytes = std::move(request->body);
    transport->lease() = std::move(request->lease);
    return false;
  }
  // The answer is posted to this very shard, so it cannot be there before the call is in the table.
  auto planning = std::make_unique<PlanningCall<Transport>>(std::move(transport), shard);
  planning->Keep(wanted);
  request->call = shard.calls.Add(std::move(planning));
  return true;
}

// A route of `Api`:
//   using Planned = …;                       // movable
//   static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
//                                    const PlanContext& context);     // pure; any thread
//   static void Answer(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
//                      Planned planned);                              // on the shard
template <typename Api>
void AnswerPlanned(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
                   StatusOr<typename Api::Planned>&& planned) {
  if (planned.ok()) LeaseMedia(exchange->lease(), *planned);
  exchange->request.DropBody();
  if (!planned.ok()) return ReplyError(*exchange, shard.api, planned.status());
  if (WaitsForMedia(exchange, shard, *planned, AnswerPlanned<Api>)) return;
  if (WaitsForGrammars(exchange, shard, *planned, AnswerPlanned<Api>)) return;
  Api::Answer(std::move(exchange), shard, *std::move(planned));
}

// Plans on the CPU pool. False: the pool is full, and the exchange is untouched.
template <typename Api>
bool PlanOnPool(std::unique_ptr<net::Exchange>& exchange, ShardContext& shard) {
  auto prepare = [&api = shard.api](const std::string& body, StepGate& gate) {
    static thread_local simdjson::dom::parser parser;
    return Api::Prepare(body, parser, PlanContext{api, api.pool, &gate});
  };
  return PlanOnPool(exchange, exchange->request.body, shard, prepare, AnswerPlanned<Api>);
}

// Each text of a list is a prompt of its own: a small body with so many strings makes much work.
inline constexpr ptrdiff_t kManyQuotes = 256;

// Whether so much is known before the body is read: its plan is too long for a shard. `Api::kListsTexts`: a body may list
// texts.
template <typename Api>
bool IsLong(const std::string& body) {
  if (body.size() > kLongBody) return true;
  if constexpr (requires { Api::kListsTexts; }) {
    return Api::kListsTexts && std::count(body.begin(), body.end(), '"') > kManyQuotes;
  } else {
    return false;
  }
}

// The handler of such a route. A plan that turns out to be too long for the shard is made again on the pool: what the gate
// let pass until then took no longer than a plan that may be made here.
template <typename Api>
void HandlePlanned(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  if (!IsLong<Api>(exchange->request.body)) {
    StepGate gate = StepGate::OnShard();
    auto planned =
        Api::Prepare(exchange->request.body, shard.parser, PlanContext{shard.api, nullptr, &gate});
    if (!gate.too_long()) {
      return AnswerPlanned<Api>(std::move(exchange), shard, std::move(planned));
    }
  }
  if (PlanOnPool<Api>(exchange, shard)) return;
  ReplyError(*exchange, shard.api, PoolIsFull());
}

}  // namespace portico::api
