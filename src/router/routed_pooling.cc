#include "router/routed_pooling.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "base/mutex.h"

namespace portico::router {
namespace {

constexpr size_t kMaxAttempts = 4;

struct PoolingRoute {
  PoolingSink* sink = nullptr;
  WorkerPtr worker;
  std::shared_ptr<Engine> engine;
  TimePoint started{};
  int64_t prefill = 0;  // as the worker's Start() has it
  size_t left = 0;      // texts without an answer
  Status failure;       // of the first text that failed
  bool aborted = false;
};
using RoutePtr = std::shared_ptr<PoolingRoute>;

void CountFailure(Worker& worker, const Status& failure, TimePoint now) {
  switch (failure.code()) {
    case StatusCode::kUnavailable:
      worker.SetHealth(Health::kUnhealthy);
      [[fallthrough]];
    case StatusCode::kInternal:
    case StatusCode::kDeadlineExceeded:
      return worker.breaker().OnFailure(now);
    default:
      return worker.breaker().OnNothing();
  }
}

}  // namespace

// The routes of one shard's sinks, by text, and where their engines deliver.
class RoutedPooling::Lane final : public PoolingSink {
 public:
  Lane(Policy& policy, ShardIndex shard) : policy_(policy), shard_(shard) {}

  ShardIndex shard() const override { return shard_; }
  void Deliver(std::vector<PoolingOutput> batch) override {
    Pass(std::move(batch), /*here=*/false);
  }
  void DeliverHere(std::vector<PoolingOutput> batch) override {
    Pass(std::move(batch), /*here=*/true);
  }

  void Add(const std::vector<PoolingRequest>& requests, const RoutePtr& route) {
    const MutexLock lock(&mutex_);
    for (const PoolingRequest& request : requests) routes_[request.stream] = route;
  }
  void Remove(const std::vector<StreamId>& streams) {
    const MutexLock lock(&mutex_);
    for (const StreamId stream : streams) routes_.erase(stream);
  }
  // Null: it has ended, or is of another lane.
  std::shared_ptr<Engine> EngineOf(StreamId stream) {
    const MutexLock lock(&mutex_);
    const auto found = routes_.find(stream);
    if (found == routes_.end()) return nullptr;
    found->second->aborted = true;
    return found->second->engine;
  }

 private:
  void Pass(std::vector<PoolingOutput> batch, bool here) {
    const TimePoint now = Clock::now();
    std::vector<std::pair<PoolingSink*, std::vector<PoolingOutput>>> by_sink;
    absl::InlinedVector<RoutePtr, 4> ended;
    {
      const MutexLock lock(&mutex_);
      for (PoolingOutput& output : batch) {
        const auto found = routes_.find(output.stream);
        if (found == routes_.end()) continue;
        const RoutePtr route = std::move(found->second);
        routes_.erase(found);
        if (output.finish == FinishReason::kError && route->failure.ok()) {
          route->failure = output.error;
        }
        if (--route->left == 0) ended.push_back(route);
        if (by_sink.empty() || by_sink.back().first != route->sink) {
          by_sink.emplace_back(route->sink, std::vector<PoolingOutput>());
        }
        by_sink.back().second.push_back(std::move(output));
      }
    }
    for (const RoutePtr& route : ended) Finish(*route, now);
    for (auto& [sink, outputs] : by_sink) {
      here ? sink->DeliverHere(std::move(outputs)) : sink->Deliver(std::move(outputs));
    }
  }

  void Finish(PoolingRoute& route, TimePoint now) {
    Worker& worker = *route.worker;
    worker.NoteLife(now);
    worker.FinishPrefill(route.prefill);
    worker.Finish();
    Outcome outcome;
    outcome.ok = route.failure.ok();
    outcome.to_first = outcome.took = now - route.started;
    policy_.OnFinish(worker, outcome);
    if (!outcome.ok) return CountFailure(worker, route.failure, now);
    route.aborted ? worker.breaker().OnNothing() : worker.breaker().OnSuccess();
  }

  Policy& policy_;
  const ShardIndex shard_;
  Mutex mutex_;
  absl::flat_hash_map<StreamId, RoutePtr> routes_ ABSL_GUARDED_BY(mutex_);
};

RoutedPooling::RoutedPooling(std::shared_ptr<Policy> policy, int shards, Choose choose)
    : policy_(std::move(policy)), choose_(std::move(choose)) {
  for (ShardIndex i = 0; i < shards; ++i) lanes_.push_back(std::make_unique<Lane>(*policy_, i));
  lanes_.push_back(std::make_unique<Lane>(*policy_, kNoShard));
}

RoutedPooling::~RoutedPooling() = default;

RoutedPooling::Lane& RoutedPooling::LaneOf(ShardIndex shard) {
  return *lanes_[shard == kNoShard ? lanes_.size() - 1 : static_cast<size_t>(shard)];
}

Status RoutedPooling::Submit(std::vector<PoolingRequest> requests, PoolingSink* sink) {
  if (requests.empty()) return OkStatus();
  Lane& lane = LaneOf(sink->shard());
  RoutingKey key;
  key.tokens = *requests.front().tokens;
  key.rid = requests.front().rid;
  key.prompt_tokens = 0;
  std::vector<StreamId> streams;
  for (const PoolingRequest& request : requests) {
    key.prompt_tokens += static_cast<int64_t>(request.tokens->size());
    streams.push_back(request.stream);
  }
  absl::InlinedVector<uint64_t, kMaxAttempts> tried;
  Status last;
  while (tried.size() < kMaxAttempts) {
    const StatusOr<RoutedMember> member = choose_(tried, key);
    if (!member.ok()) return last.ok() ? member.status() : last;
    Worker& worker = *member->worker;
    tried.push_back(worker.number());
    auto route = std::make_shared<PoolingRoute>();
    route->sink = sink;
    route->worker = member->worker;
    route->engine = member->engine;
    route->started = Clock::now();
    route->left = requests.size();
    const int64_t prefill = policy_->OnStart(worker, key);
    route->prefill = prefill;
    worker.Start(prefill);
    lane.Add(requests, route);
    // A copy: another worker may have to take them.
    last = member->engine->SubmitPooling(requests, &lane);
    if (last.ok()) return last;
    lane.Remove(streams);
    worker.FinishPrefill(prefill);
    worker.Finish();
    worker.breaker().OnNothing();
    Outcome outcome;
    outcome.ok = false;
    policy_->OnFinish(worker, outcome);
    if (last.code() == StatusCode::kInvalidArgument) return last;
  }
  return last;
}

void RoutedPooling::Abort(StreamId stream, ShardIndex shard) {
  const auto abort = [&](Lane& lane) {
    const std::shared_ptr<Engine> engine = lane.EngineOf(stream);
    if (engine) engine->Abort(stream, lane.shard() == shard ? shard : kNoShard);
  };
  if (shard != kNoShard) return abort(LaneOf(shard));
  for (const auto& lane : lanes_) abort(*lane);
}

}  // namespace portico::router
