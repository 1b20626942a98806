#include "router/token_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <latch>
#include <utility>

#include "base/log.h"

namespace portico::router {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);

GrpcEngineOptions OptionsOf(const GrpcEngineOptions& all, const WorkerSpec& spec) {
  GrpcEngineOptions options = all;
  options.channel.host = spec.host;
  options.channel.port = spec.port;
  if (!spec.tls) options.channel.tls = nullptr;
  if (!spec.api_key.empty()) options.api_key = spec.api_key;
  options.channel.keepalive_time = std::chrono::seconds(300);
  // A worker that is down is looked at by probes, not by waiting: connections must not back off longer
  // than they.
  options.channel.backoff.initial = std::chrono::milliseconds(200);
  options.channel.backoff.max = std::chrono::milliseconds(500);
  return options;
}

}  // namespace

struct TokenFleet::Watch {
  WorkerPtr worker;
  std::shared_ptr<GrpcEngine> engine;
  TimePoint next_probe{};
  TimePoint next_load{};
  bool probing = false;
  bool asking = false;
  bool was_healthy = false;  // as of the last tick
  bool has_been_up = false;
  bool follows = false;  // what its cache holds
  int failures = 0;
  std::string told;  // the reason in the log
};

TokenFleet::TokenFleet(TokenFleetOptions options)
    : options_(std::move(options)), shard_(*options_.engine.shards.front()) {
  for (const WorkerSpec& spec : options_.workers) {
    auto watch = std::make_unique<Watch>();
    watch->worker = std::make_shared<Worker>(spec);
    watch->worker->breaker().Configure(options_.breaker);
    watch->engine = std::make_shared<GrpcEngine>(OptionsOf(options_.engine, spec));
    watches_.push_back(std::move(watch));
  }
}

TokenFleet::~TokenFleet() { Stop(); }

void TokenFleet::Start() {
  shard_.Post([this] { Tick(); });
}

void TokenFleet::Stop() {
  {
    const MutexLock lock(&mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  std::latch done(1);
  shard_.Post([this, &done] {
    timer_.reset();
    done.count_down();
  });
  done.wait();
  for (const auto& watch : watches_) watch->engine->Stop();
}

StatusOr<TokenWorkerFacts> TokenFleet::WaitForFacts(Duration patience) {
  const TimePoint deadline = Clock::now() + patience;
  const MutexLock lock(&mutex_);
  while (!facts_ && !stopped_ && changed_.WaitUntil(&mutex_, deadline)) {
  }
  if (facts_) return *facts_;
  return Error(StatusCode::kDeadlineExceeded,
               fmt::format("no worker has answered within {:.0f} s: {}", Seconds(patience),
                           last_failure_.ok() ? "no answer at all" : MessageOf(last_failure_)));
}

std::unique_ptr<RoutedEngine> TokenFleet::MakeEngine(std::shared_ptr<TokenFleet> fleet,
                                                     const TokenWorkerFacts& facts,
                                                     std::shared_ptr<Policy> policy) {
  RoutedOptions options;
  options.info = facts.info;
  options.policy = policy;
  options.shards = static_cast<int>(fleet->options_.engine.shards.size());
  options.on_stop = [fleet] { fleet->Stop(); };
  std::vector<RoutedMember> members;
  for (const auto& watch : fleet->watches_) {
    watch->engine->SetInfo(facts.info);
    members.push_back({watch->worker, watch->engine});
  }
  auto engine = std::make_unique<RoutedEngine>(std::move(options));
  engine->SetMembers(std::move(members));
  const MutexLock lock(&fleet->mutex_);
  fleet->policy_ = std::move(policy);
  return engine;
}

void TokenFleet::Tick() {
  timer_ = shard_.After(kTick, [this] { Tick(); });
  const TimePoint now = Clock::now();
  for (const auto& watch : watches_) {
    const bool healthy = watch->worker->health() == Health::kHealthy;
    // A stream has marked it down since.
    if (watch->was_healthy && !healthy) watch->next_probe = now;
    watch->was_healthy = healthy;
    if (now >= watch->next_probe && !watch->probing) Probe(*watch);
    if (healthy && now >= watch->next_load && !watch->asking) AskLoad(*watch);
  }
  if (now < next_policy_tick_) return;
  next_policy_tick_ = now + std::chrono::seconds(1);
  const MutexLock lock(&mutex_);
  if (policy_) policy_->OnTick(now);
}

void TokenFleet::Probe(Watch& watch) {
  watch.probing = true;
  watch.engine->CheckHealth(options_.probe_timeout,
                            [this, &watch](const Status& status) { OnProbe(watch, status); });
}

void TokenFleet::GoDown(Watch& watch, const Status& why) {
  watch.worker->SetHealth(Health::kUnhealthy);
  const std::string reason(MessageOf(why));
  if (watch.told != reason) {
    watch.told = reason;
    LogWarning("worker {} is down: {}", watch.worker->url(), reason);
  }
  const MutexLock lock(&mutex_);
  last_failure_ = why;
}

void TokenFleet::OnProbe(Watch& watch, const Status& status) {
  const TimePoint now = Clock::now();
  const bool healthy = watch.worker->health() == Health::kHealthy;
  if (status.ok() && healthy) {
    watch.probing = false;
    watch.failures = 0;
    watch.next_probe = now + options_.interval;
    watch.worker->NoteLife(now);
    return;
  }
  if (status.ok()) {
    watch.engine->FetchFacts(
        options_.probe_timeout,
        [this, &watch](const StatusOr<TokenWorkerFacts>& facts) { OnFacts(watch, facts); });
    return;
  }
  watch.probing = false;
  watch.next_probe = now + options_.down_interval;
  // A refused connection is certain, silence may be a busy worker.
  const bool gone = status.code() == StatusCode::kUnavailable;
  if (healthy && !gone && ++watch.failures < options_.failure_threshold) return;
  GoDown(watch, status);
}

void TokenFleet::OnFacts(Watch& watch, const StatusOr<TokenWorkerFacts>& facts) {
  const TimePoint now = Clock::now();
  watch.probing = false;
  watch.next_probe = now + options_.down_interval;
  if (!facts.ok()) return GoDown(watch, facts.status());
  std::shared_ptr<Policy> policy;
  Status other;
  {
    const MutexLock lock(&mutex_);
    if (!facts_) facts_ = *facts;
    if (facts->info.vocab_size != facts_->info.vocab_size ||
        facts->info.eos_token_ids != facts_->info.eos_token_ids ||
        facts->info.context_length < facts_->info.context_length) {
      other = Error(StatusCode::kFailedPrecondition, "it serves another model");
    }
    policy = policy_;
  }
  if (!other.ok()) return GoDown(watch, other);
  changed_.NotifyAll();
  if (!std::exchange(watch.follows, true)) {
    watch.engine->FollowKvEvents([this, &watch](const KvEventBatch* batch, bool reset) {
      return OnKvEvents(watch, batch, reset);
    });
  }
  if (watch.has_been_up && policy) policy->OnWorkerLost(*watch.worker);
  if (watch.has_been_up) watch.worker->SetHealthySince(now);
  watch.has_been_up = true;
  watch.failures = 0;
  watch.told.clear();
  watch.next_probe = now + options_.interval;
  watch.worker->breaker().Close();
  watch.worker->NoteLife(now);
  watch.worker->SetHealth(Health::kHealthy);
  watch.was_healthy = true;
  LogInfo("worker {} is healthy", watch.worker->url());
}

KvWish TokenFleet::OnKvEvents(Watch& watch, const KvEventBatch* batch, bool reset) {
  std::shared_ptr<Policy> policy;
  {
    const MutexLock lock(&mutex_);
    policy = policy_;
  }
  if (policy == nullptr || !policy->wants_kv_events()) return KvWish::kNothing;
  const KvEventBatch nothing;
  const bool understood =
      policy->OnKvEvents(*watch.worker, batch == nullptr ? nothing : *batch, reset);
  return understood ? KvWish::kMore : KvWish::kState;
}

void TokenFleet::AskLoad(Watch& watch) {
  watch.asking = true;
  watch.engine->FetchLoad(options_.probe_timeout,
                          [this, &watch](const StatusOr<TokenWorkerLoad>& load) {
                            watch.asking = false;
                            watch.next_load = Clock::now() + options_.load_interval;
                            if (!load.ok()) return;
                            watch.worker->SetReport({.running_requests = load->running,
                                                     .waiting_requests = load->waiting,
                                                     .used_tokens = load->used_tokens,
                                                     .total_tokens = load->total_tokens,
                                                     .token_usage = load->token_usage,
                                                     .throughput = load->throughput,
                                                     .at = Clock::now()});
                          });
}

}  // namespace portico::router
