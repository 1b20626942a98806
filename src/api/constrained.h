// Between a plan and its answer: what the answer must look like is compiled, off the shard.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "api/planning_call.h"
#include "service/constraint/constrain.h"

namespace portico::api {

// Holds the transport until the grammars of these plans (which live in `*planned`) are there, then runs
// `answer(transport, shard, StatusOr<Planned>)` on the shard. A client that leaves meanwhile takes it along, and with it
// what nobody else waits for.
template <typename Transport, typename Planned, typename Answer>
void AnswerWithGrammars(std::unique_ptr<Transport> transport, ShardContext& shard,
                        const ServingModel& model, std::shared_ptr<Planned> planned,
                        std::vector<GenerationPlan*> plans, Answer answer) {
  const auto wanted = std::make_shared<char>();
  auto waiting = std::make_unique<PlanningCall<Transport>>(std::move(transport), shard);
  waiting->Keep(wanted);
  const uint64_t serial = shard.calls.Add(std::move(waiting));
  CompileGrammars(
      model, std::move(plans), wanted, [planned, serial, &shard, answer](Status status) {
        shard.shard.Post([planned, serial, &shard, answer, status] {
          EndPlanning<Transport>(shard, serial, [&](std::unique_ptr<Transport> owned) {
            answer(
                std::move(owned), shard,
                status.ok() ? StatusOr<Planned>(std::move(*planned)) : StatusOr<Planned>(status));
          });
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
