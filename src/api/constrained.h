// Between a plan and its answer: what the answer must look like is compiled, off the shard.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "api/planning_call.h"
#include "service/constraint/constrain.h"

namespace portico::api {

// Holds the transport until the grammars of these plans (which live in `*planned`) are there, then runs
// `answer(transport, shard, StatusOr<Planned>)` on the shard. A client that leaves meanwhile takes it along.
template <typename Transport, typename Planned, typename Answer>
void AnswerWithGrammars(std::unique_ptr<Transport> transport, ShardContext& shard,
                        const ServingModel& model, std::shared_ptr<Planned> planned,
                        std::vector<GenerationPlan*> plans, Answer answer) {
  auto pending = std::make_shared<std::atomic<uint64_t>>(0);
  *pending =
      shard.calls.Add(std::make_unique<PlanningCall<Transport>>(std::move(transport), shard));
  CompileGrammars(model, std::move(plans), [planned, pending, &shard, answer](Status status) {
    shard.shard.Post([planned, pending, &shard, answer, status] {
      Call* call = shard.calls.Find(*pending);
      if (call == nullptr) return;
      auto& planning = static_cast<PlanningCall<Transport>&>(*call);
      const EarlyAborts aborts = planning.TakeAborts();
      auto owned = planning.Take();
      shard.calls.Remove(call);
      const uint64_t before = shard.calls.last_serial();
      if (status.ok()) {
        answer(std::move(owned), shard, StatusOr<Planned>(std::move(*planned)));
      } else {
        answer(std::move(owned), shard, StatusOr<Planned>(status));
      }
      shard.calls.AbortSince(before, aborts);
    });
  });
}

// The plans of `planned` that need a grammar, of APIs that answer with text: they have `model`, and a `plan` that is one
// GenerationPlan or a NativePlan. Others have none.
template <typename Planned>
std::vector<GenerationPlan*> PlansWithGrammars(Planned& planned) {
  std::vector<GenerationPlan*> plans;
  if constexpr (requires { planned.plan.constraint; }) {
    if (NeedsGrammar(*planned.model, planned.plan)) plans.push_back(&planned.plan);
  } else if constexpr (requires { planned.plan.prompts.front().constraint; }) {
    for (GenerationPlan& plan : planned.plan.prompts) {
      if (NeedsGrammar(*planned.model, plan)) plans.push_back(&plan);
    }
  }
  return plans;
}

// True: `answer` will be called, and the transport has been taken.
template <typename Transport, typename Planned, typename Answer>
bool WaitsForGrammars(std::unique_ptr<Transport>& transport, ShardContext& shard, Planned& planned,
                      Answer answer) {
  if constexpr (requires {
                  planned.model;
                  planned.plan;
                }) {
    if (PlansWithGrammars(planned).empty()) return false;
    auto held = std::make_shared<Planned>(std::move(planned));
    std::vector<GenerationPlan*> plans = PlansWithGrammars(*held);
    AnswerWithGrammars(std::move(transport), shard, *held->model, held, std::move(plans),
                       std::move(answer));
    return true;
  } else {
    return false;
  }
}

}  // namespace portico::api
