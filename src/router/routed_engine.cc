#include "router/routed_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "message/queue_full.h"
#include "router/routed_lane.h"

namespace portico::router {

RoutedEngine::RoutedEngine(RoutedOptions options)
    : options_(std::move(options)),
      members_(std::make_shared<const Members>()),
      pooling_(
          options_.policy, options_.shards,
          [this](std::span<const uint64_t> tried, const RoutingKey& key) -> StatusOr<RoutedMember> {
            const auto all = members();
            PORTICO_ASSIGN_OR_RETURN(const RoutedMember* member, Choose(*all, tried, key));
            return *member;
          }) {
  for (ShardIndex i = 0; i < options_.shards; ++i) {
    lanes_.push_back(std::make_unique<Lane>(*this, i));
  }
  lanes_.push_back(std::make_unique<Lane>(*this, kNoShard));
}

RoutedEngine::~RoutedEngine() { Stop(); }

std::shared_ptr<const RoutedEngine::Members> RoutedEngine::members() const {
  const MutexLock lock(&mutex_);
  return members_;
}

void RoutedEngine::SetMembers(std::vector<RoutedMember> members) {
  std::sort(members.begin(), members.end(), [](const RoutedMember& a, const RoutedMember& b) {
    return a.worker->number() < b.worker->number();
  });
  auto made = std::make_shared<const Members>(std::move(members));
  std::shared_ptr<const Members> before;
  {
    const MutexLock lock(&mutex_);
    before = std::exchange(members_, made);
  }
  auto has = [](const Members& all, const Worker* worker) {
    return std::any_of(all.begin(), all.end(),
                       [&](const RoutedMember& member) { return member.worker.get() == worker; });
  };
  for (const RoutedMember& member : *made) {
    if (!has(*before, member.worker.get())) options_.policy->OnWorkerAdded(*member.worker);
  }
  for (const RoutedMember& member : *before) {
    if (!has(*made, member.worker.get())) options_.policy->OnWorkerRemoved(*member.worker);
  }
}

RoutedEngine::Lane& RoutedEngine::LaneOf(ShardIndex shard) {
  return *lanes_[shard == kNoShard ? lanes_.size() - 1 : static_cast<size_t>(shard)];
}

Status RoutedEngine::WhyNone(const Members& members) const {
  if (members.empty()) return Error(StatusCode::kUnavailable, "no worker is there");
  int down = 0;
  int draining = 0;
  for (const RoutedMember& member : members) {
    draining += member.worker->draining();
    down += !member.worker->draining() && member.worker->health() != Health::kHealthy;
  }
  return Error(StatusCode::kUnavailable,
               fmt::format("no worker can take the request: of {}, {} are down and {} draining",
                           members.size(), down, draining));
}

StatusOr<const RoutedMember*> RoutedEngine::Choose(const Members& members,
                                                   std::span<const uint64_t> tried,
                                                   const RoutingKey& key) const {
  const TimePoint now = Clock::now();
  absl::InlinedVector<Worker*, 64> candidates;
  absl::InlinedVector<const RoutedMember*, 64> of;
  bool full = false;
  for (const Health wanted : {Health::kHealthy, Health::kUnknown}) {
    for (const RoutedMember& member : members) {
      Worker& worker = *member.worker;
      if (worker.health() != wanted || worker.draining()) continue;
      if (std::find(tried.begin(), tried.end(), worker.number()) != tried.end()) continue;
      if (!worker.breaker().Allows(now)) continue;
      if (options_.worker_max_requests > 0 && worker.requests() >= options_.worker_max_requests) {
        full = true;
        continue;
      }
      candidates.push_back(&worker);
      of.push_back(&member);
    }
    if (!candidates.empty()) break;
  }
  while (!candidates.empty()) {
    const Choice choice = options_.policy->Choose(candidates, key);
    if (candidates[choice.index]->breaker().Begin(now)) return of[choice.index];
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(choice.index));
    of.erase(of.begin() + static_cast<std::ptrdiff_t>(choice.index));
  }
  if (full) {
    return Error(StatusCode::kResourceExhausted, "all workers are at their limit", {}, kQueueFull);
  }
  return WhyNone(members);
}

Status RoutedEngine::Send(Lane& lane, Route& route) {
  const std::shared_ptr<const Members> all = members();
  RoutingKey key;
  key.tokens = *route.request.prompt;
  key.rid = route.request.rid;
  key.prompt_tokens = static_cast<int64_t>(route.request.prompt->size());
  Status last;
  const StreamId stream = route.request.stream;
  while (route.tried.size() < kMaxAttempts) {
    auto member = Choose(*all, route.tried, key);
    if (!member.ok()) return last.ok() ? member.status() : last;
    Worker& worker = *(*member)->worker;
    const std::shared_ptr<Engine> engine = (*member)->engine;
    {
      const MutexLock lock(&lane.mutex);
      route.worker = (*member)->worker;
      route.engine = engine;
      route.tried.push_back(worker.number());
      route.started = Clock::now();
    }
    route.prefill = options_.policy->OnStart(worker, key);
    worker.Start(route.prefill);
    // The engine may deliver on another thread before Submit() returns: the route is complete by then.
    last = engine->Submit(route.request, &lane);
    if (last.ok()) {
      // What was aborted before the engine knew it. The route may have ended by now.
      bool aborted = false;
      {
        const MutexLock lock(&lane.mutex);
        const auto found = lane.routes.find(stream);
        aborted = found != lane.routes.end() && found->second->aborted;
      }
      if (aborted) engine->Abort(stream, lane.shard());
      return last;
    }
    worker.FinishPrefill(route.prefill);
    worker.Finish();
    worker.breaker().OnNothing();
    Outcome outcome;
    outcome.ok = false;
    options_.policy->OnFinish(worker, outcome);
    if (last.code() == StatusCode::kInvalidArgument) return last;
  }
  return last;
}

Status RoutedEngine::Submit(GenerateRequest request, TokenSink* sink) {
  if (stopped_) return Error(StatusCode::kUnavailable, "the engine has stopped");
  Lane& lane = LaneOf(sink->shard());
  const StreamId stream = request.stream;
  auto made = std::make_unique<Route>();
  made->request = std::move(request);
  made->sink = sink;
  Route& route = *made;
  {
    const MutexLock lock(&lane.mutex);
    lane.routes[stream] = std::move(made);
  }
  Status status = Send(lane, route);
  if (!status.ok()) {
    const MutexLock lock(&lane.mutex);
    lane.routes.erase(stream);
  }
  return status;
}

Status RoutedEngine::SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) {
  if (stopped_) return Error(StatusCode::kUnavailable, "the engine has stopped");
  if (!options_.info.can.pooling) return Engine::SubmitPooling(std::move(requests), sink);
  return pooling_.Submit(std::move(requests), sink);
}

void RoutedEngine::Abort(StreamId stream, ShardIndex shard) {
  auto abort = [&](Lane& lane) {
    std::shared_ptr<Engine> engine;
    {
      const MutexLock lock(&lane.mutex);
      const auto found = lane.routes.find(stream);
      if (found == lane.routes.end()) return;
      found->second->aborted = true;
      engine = found->second->engine;
    }
    if (engine) engine->Abort(stream, lane.shard() == shard ? shard : kNoShard);
  };
  if (options_.info.can.pooling) pooling_.Abort(stream, shard);
  if (shard != kNoShard) return abort(LaneOf(shard));
  for (const auto& lane : lanes_) abort(*lane);
}

Status RoutedEngine::Ready() const {
  const auto all = members();
  const TimePoint now = Clock::now();
  for (const RoutedMember& member : *all) {
    Worker& worker = *member.worker;
    if (worker.health() == Health::kHealthy && !worker.draining() && worker.breaker().Allows(now)) {
      return OkStatus();
    }
  }
  return WhyNone(*all);
}

std::vector<EngineLoad> RoutedEngine::rank_loads() const {
  std::vector<EngineLoad> loads;
  const auto all = members();
  for (const RoutedMember& member : *all) {
    EngineLoad load = member.engine->load();
    const ReportedLoad report = member.worker->report();
    if (report.used_tokens >= 0) load.kv_cells_used = static_cast<int64_t>(report.used_tokens);
    if (report.total_tokens > 0) load.kv_cells_total = static_cast<int64_t>(report.total_tokens);
    load.healthy = load.healthy && member.worker->health() != Health::kUnhealthy;
    loads.push_back(load);
  }
  return loads;
}

std::vector<LoraAdapter> RoutedEngine::adapters() const {
  const auto all = members();
  for (const RoutedMember& member : *all) {
    if (member.worker->health() != Health::kUnhealthy) return member.engine->adapters();
  }
  return {};
}

EngineLoad RoutedEngine::load() const {
  EngineLoad sum;
  sum.healthy = false;
  for (const EngineLoad& load : rank_loads()) {
    sum.running += load.running;
    sum.waiting += load.waiting;
    sum.kv_cells_used += load.kv_cells_used;
    sum.kv_cells_cached += load.kv_cells_cached;
    sum.kv_cells_total += load.kv_cells_total;
    sum.prompt_tokens += load.prompt_tokens;
    sum.cached_tokens += load.cached_tokens;
    sum.generated_tokens += load.generated_tokens;
    sum.retractions += load.retractions;
    sum.steps += load.steps;
    sum.bad_frames += load.bad_frames;
    sum.paused |= load.paused;
    sum.healthy |= load.healthy;
  }
  return sum;
}

void RoutedEngine::Control(EngineControl control, TimePoint deadline, ControlDone done) {
  struct Gathered {
    Gathered(size_t answers, ControlDone then) : left(answers), done(std::move(then)) {}

    Mutex mutex;
    size_t left ABSL_GUARDED_BY(mutex);
    Status first_error ABSL_GUARDED_BY(mutex);
    ControlDone done;
  };
  const bool of_session = std::holds_alternative<OpenSessionControl>(control) ||
                          std::holds_alternative<CloseSessionControl>(control);
  if (of_session && !options_.info.can.sessions) {
    return done(CannotControl(options_.info.name, control));
  }
  const auto all = members();
  if (all->empty()) return done(WhyNone(*all));
  auto gathered = std::make_shared<Gathered>(all->size(), std::move(done));
  for (const RoutedMember& member : *all) {
    member.engine->Control(control, deadline, [gathered](Status status) {
      Status first_error;
      {
        const MutexLock lock(&gathered->mutex);
        if (gathered->first_error.ok()) gathered->first_error = std::move(status);
        if (--gathered->left > 0) return;
        first_error = std::move(gathered->first_error);
      }
      gathered->done(std::move(first_error));
    });
  }
}

void RoutedEngine::Stop() {
  if (stopped_.exchange(true)) return;
  if (options_.on_stop) options_.on_stop();
  const auto all = members();
  for (const RoutedMember& member : *all) member.engine->Stop();
}

}  // namespace portico::router
