// Between a plan and its answer: media that the request names by address are fetched.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "api/context.h"
#include "api/planning_call.h"
#include "base/status.h"
#include "message/request_media.h"
#include "net/http/body_budget.h"
#include "service/generation/generation.h"
#include "service/plan/capability_checks.h"
#include "service/plan/request_media.h"
#include "service/serving_model.h"
#include "service/upstream/media_fetches.h"

namespace portico::api {

// The plans of APIs that answer with text: they have `model`, and a `plan` that is one GenerationPlan or a NativePlan.
template <typename Planned>
std::vector<GenerationPlan*> PlansWithMedia(Planned& planned) {
  std::vector<GenerationPlan*> plans;
  const auto add = [&plans](GenerationPlan& plan) {
    if (plan.extras != nullptr && plan.extras->media != nullptr) plans.push_back(&plan);
  };
  if constexpr (requires { planned.plan.constraint; }) {
    add(planned.plan);
  } else if constexpr (requires { planned.plan.prompts.front().constraint; }) {
    for (GenerationPlan& plan : planned.plan.prompts) add(plan);
  }
  return plans;
}

// Whether a result has media, which hold as many bytes as the body that they came in.
template <typename Result>
bool HoldsMedia(Result& result) {
  if constexpr (requires {
                  result.ok();
                  result->model;
                  result->plan;
                }) {
    return result.ok() && !PlansWithMedia(*result).empty();
  } else {
    return false;
  }
}

// The share of the budget that the body took is the media's from here on, until the engine has read them.
template <typename Planned>
void LeaseMedia(net::BodyLease& lease, Planned& planned) {
  if (lease.taken() == 0) return;
  const std::vector<GenerationPlan*> plans = PlansWithMedia(planned);
  if (plans.empty()) return;
  const auto shared = std::make_shared<net::BodyLease>(std::move(lease));
  for (GenerationPlan* plan : plans) {
    auto media = std::make_shared<RequestMedia>(*plan->extras->media);
    media->lease = shared;
    plan->extras = WithMedia(plan->extras, std::move(media));
  }
}

// Reads what came with the request.
template <typename Planned>
Status ReadMedia(const ApiContext& api, Planned* planned) {
  for (GenerationPlan* plan : PlansWithMedia(*planned)) {
    PORTICO_ASSIGN_OR_RETURN(auto media, ReadInlineMedia(api.media, *plan->extras->media));
    plan->extras = WithMedia(plan->extras, std::move(media));
  }
  return OkStatus();
}

// True: `answer(transport, shard, StatusOr<Planned>)` will be called once all is there, and the transport has been taken. A
// client that leaves meanwhile takes it along.
template <typename Transport, typename Planned, typename Answer>
bool WaitsForMedia(std::unique_ptr<Transport>& transport, ShardContext& shard, Planned& planned,
                   Answer answer) {
  if constexpr (requires {
                  planned.model;
                  planned.plan;
                }) {
    const auto needs = [](const GenerationPlan* plan) { return NeedsFetch(*plan->extras->media); };
    const std::vector<GenerationPlan*> plans = PlansWithMedia(planned);
    if (std::none_of(plans.begin(), plans.end(), needs)) return false;
    auto held = std::make_shared<Planned>(std::move(planned));
    MediaFetches::List wanted;
    for (const GenerationPlan* plan : PlansWithMedia(*held)) wanted.push_back(plan->extras->media);
    auto waiting = std::make_unique<PlanningCall<Transport>>(std::move(transport), shard);
    PlanningCall<Transport>& call = *waiting;
    const uint64_t serial = shard.calls.Add(std::move(waiting));
    call.Keep(MediaFetches::Start(
        shard.shard, *shard.api.pool, shard.api.media, wanted,
        [held, serial, &shard, answer](StatusOr<MediaFetches::List> fetched) {
          EndPlanning<Transport>(shard, serial, [&](std::unique_ptr<Transport> owned) {
            if (!fetched.ok()) {
              return answer(std::move(owned), shard, StatusOr<Planned>(fetched.status()));
            }
            size_t i = 0;
            for (GenerationPlan* plan : PlansWithMedia(*held)) {
              plan->extras = WithMedia(plan->extras, std::move((*fetched)[i++]));
            }
            answer(std::move(owned), shard, StatusOr<Planned>(std::move(*held)));
          });
        }));
    return true;
  } else {
    return false;
  }
}

}  // namespace portico::api
