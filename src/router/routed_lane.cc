// The way back: a worker's deltas go to the request's sink, and one that fails before its first token is asked of another.
#include "router/routed_lane.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "message/request_extras.h"
#include "message/request_media.h"

namespace portico::router {
namespace {

bool WorthAnother(const TokenDelta& last) {
  if (last.finish == FinishReason::kAbort) return true;  // not by us
  return last.error.code() == StatusCode::kUnavailable ||
         last.error.code() == StatusCode::kResourceExhausted;
}

}  // namespace

void RoutedEngine::Lane::Finish(Route& route, const TokenDelta& last, bool aborted, TimePoint now) {
  Worker& worker = *route.worker;
  if (!route.begun) worker.FinishPrefill(route.prefill);
  worker.Finish();
  Outcome outcome;
  outcome.ok = last.finish != FinishReason::kError;
  if (route.begun) outcome.to_first = route.first - route.started;
  outcome.took = now - route.started;
  outcome.completion_tokens = last.usage.completion_tokens;
  outcome.cached_tokens = last.usage.cached_tokens;
  if (engine_.options_.policy) engine_.options_.policy->OnFinish(worker, outcome);
  if (outcome.ok) {
    aborted ? worker.breaker().OnNothing() : worker.breaker().OnSuccess();
    return;
  }
  if (ReasonOf(last.error) == kMediaFailed) return worker.breaker().OnNothing();
  switch (last.error.code()) {
    case StatusCode::kUnavailable:
      worker.SetHealth(Health::kUnhealthy);
      [[fallthrough]];
    case StatusCode::kInternal:
    case StatusCode::kDeadlineExceeded:
      worker.breaker().OnFailure(now);
      break;
    default:
      worker.breaker().OnNothing();
  }
}

TokenSink* RoutedEngine::Lane::Take(TokenDelta& delta, TimePoint now) {
  std::unique_ptr<Route> ended;
  std::shared_ptr<const RequestExtras> unused;  // media take long to free
  Route* again = nullptr;                       // stays in the table, where an abort finds it
  bool aborted = false;
  {
    const MutexLock lock(&mutex);
    const auto found = routes.find(delta.stream);
    if (found == routes.end()) return nullptr;
    Route& route = *found->second;
    route.worker->NoteLife(now);
    if (!route.begun && !delta.tokens.empty()) {
      route.begun = true;
      route.first = now;
      unused = std::move(route.request.extras);  // nothing is asked again
      route.worker->FinishPrefill(route.prefill);
    }
    if (delta.finish == FinishReason::kNone) return route.sink;
    aborted = route.aborted;
    if (!route.begun && !aborted && WorthAnother(delta) && route.tried.size() < kMaxAttempts &&
        !engine_.stopped_) {
      again = &route;
    } else {
      ended = std::move(found->second);
      routes.erase(found);
    }
  }
  Finish(again != nullptr ? *again : *ended, delta, aborted, now);
  if (again == nullptr) return ended->sink;
  TokenSink* const sink = again->sink;
  if (engine_.Send(*this, *again).ok()) return nullptr;
  // The first worker's failure says more than that there is no other.
  const MutexLock lock(&mutex);
  const auto found = routes.find(delta.stream);
  aborted = found->second->aborted;
  routes.erase(found);
  if (delta.finish == FinishReason::kAbort && !aborted) {
    delta.finish = FinishReason::kError;
    delta.error = Error(StatusCode::kUnavailable, "the worker has stopped");
  }
  return sink;
}

void RoutedEngine::Lane::Pass(std::vector<TokenDelta> batch, bool here) {
  const TimePoint now = Clock::now();
  auto hand_on = [here](TokenSink* sink, std::vector<TokenDelta> deltas) {
    here ? sink->DeliverHere(std::move(deltas)) : sink->Deliver(std::move(deltas));
  };
  if (batch.size() == 1) {
    if (TokenSink* sink = Take(batch.front(), now)) hand_on(sink, std::move(batch));
    return;
  }
  std::vector<std::pair<TokenSink*, std::vector<TokenDelta>>> by_sink;
  for (TokenDelta& delta : batch) {
    TokenSink* sink = Take(delta, now);
    if (sink == nullptr) continue;
    if (by_sink.empty() || by_sink.back().first != sink)
      by_sink.emplace_back(sink, std::vector<TokenDelta>());
    by_sink.back().second.push_back(std::move(delta));
  }
  for (auto& [sink, deltas] : by_sink) hand_on(sink, std::move(deltas));
}

}  // namespace portico::router
