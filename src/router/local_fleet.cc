#include "router/local_fleet.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace portico::router {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(250);

// What all of them can do, and the sum of what they have room for.
Status Join(const EngineInfo& other, EngineInfo* info) {
  if (other.vocab_size != info->vocab_size || other.context_length != info->context_length ||
      other.eos_token_ids != info->eos_token_ids || other.task != info->task) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("the engines serve different models: {} and {}", info->model_path,
                             other.model_path));
  }
  info->max_total_tokens += other.max_total_tokens;
  info->max_running_requests += other.max_running_requests;
  info->max_queued_requests += other.max_queued_requests;
  for (const auto can :
       {&EngineCapabilities::logprobs, &EngineCapabilities::prompt_logprobs,
        &EngineCapabilities::grammars, &EngineCapabilities::compiles_grammars,
        &EngineCapabilities::hidden_states, &EngineCapabilities::routed_experts,
        &EngineCapabilities::input_embeddings, &EngineCapabilities::lora,
        &EngineCapabilities::custom_logit_processors, &EngineCapabilities::disaggregation,
        &EngineCapabilities::priorities, &EngineCapabilities::cache_keys,
        &EngineCapabilities::stop_regex, &EngineCapabilities::pooling, &EngineCapabilities::pause,
        &EngineCapabilities::weight_updates, &EngineCapabilities::profiles}) {
    info->can.*can = info->can.*can && other.can.*can;
  }
  for (size_t kind = 0; kind < kMediaKinds; ++kind) {
    if (!info->can.media[kind] || other.can.media[kind]) continue;
    info->can.media[kind] = false;
    info->no_media[kind] = other.no_media[kind];
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Engine>> LocalFleet::MakeEngine(
    std::vector<std::unique_ptr<Engine>> engines, std::shared_ptr<Policy> policy, int shards) {
  std::shared_ptr<LocalFleet> fleet(new LocalFleet);
  fleet->policy_ = policy;
  RoutedOptions options;
  options.info = engines.front()->info();
  std::vector<RoutedMember> members;
  for (size_t i = 0; i < engines.size(); ++i) {
    if (i > 0) PORTICO_RETURN_IF_ERROR(Join(engines[i]->info(), &options.info));
    WorkerSpec spec;
    spec.url = fmt::format("local://{}", i);
    spec.protocol = Protocol::kGrpc;  // it takes tokens
    Watch watch;
    watch.worker = std::make_shared<Worker>(spec);
    watch.worker->SetHealth(Health::kHealthy);
    watch.engine = std::move(engines[i]);
    members.push_back({watch.worker, watch.engine});
    fleet->watches_.push_back(std::move(watch));
  }
  // A request must come back to where its session is, and a rank is one engine's.
  options.info.can.sessions = false;
  options.info.can.data_parallel_ranks = 1;
  options.info.can.pooling_ranks = 1;
  options.policy = std::move(policy);
  options.shards = shards;
  options.on_stop = [fleet] { fleet->Stop(); };
  auto engine = std::make_unique<RoutedEngine>(std::move(options));
  engine->SetMembers(std::move(members));
  for (Watch& watch : fleet->watches_) {
    auto* source = dynamic_cast<KvEventSource*>(watch.engine.get());
    if (source == nullptr || !fleet->policy_->wants_kv_events()) continue;
    watch.kv_events = source->kv_events();
    if (watch.kv_events != nullptr) fleet->Follow(watch);
  }
  fleet->thread_ = std::thread([raw = fleet.get()] { raw->Run(); });
  return std::unique_ptr<Engine>(std::move(engine));
}

void LocalFleet::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  for (Watch& watch : watches_) {
    if (watch.subscription != 0) watch.kv_events->Unsubscribe(std::exchange(watch.subscription, 0));
  }
}

void LocalFleet::Follow(Watch& watch) {
  if (watch.subscription != 0) watch.kv_events->Unsubscribe(std::exchange(watch.subscription, 0));
  watch.wants_state = std::make_shared<std::atomic<bool>>(false);
  // On the publishing thread, or within Subscribe().
  auto listener = [policy = policy_, worker = watch.worker, wants_state = watch.wants_state,
                   first = true](const KvEventBatchPtr& batch) mutable {
    if (wants_state->load(std::memory_order_relaxed)) return;
    const bool reset = std::exchange(first, false);
    if (!policy->OnKvEvents(*worker, *batch, reset)) {
      wants_state->store(true, std::memory_order_relaxed);
    }
  };
  // From 0 on it cannot be out of range.
  watch.subscription = watch.kv_events->Subscribe(0, std::move(listener)).value_or(0);
}

void LocalFleet::Look(Watch& watch, TimePoint now) {
  const EngineLoad load = watch.engine->load();
  Worker& worker = *watch.worker;
  const bool back = load.healthy && !watch.lived;
  if (load.healthy != watch.lived) {
    LogInfo("engine {} {}", worker.url(), load.healthy ? "is running again" : "failed");
    if (!load.healthy) policy_->OnWorkerLost(worker);
    watch.lived = load.healthy;
  }
  worker.SetHealth(load.healthy ? Health::kHealthy : Health::kUnhealthy);
  if (!load.healthy) return;
  if (back) {
    worker.breaker().Close();
    worker.SetHealthySince(now);
    watch.tokens = load.generated_tokens;
  }
  worker.NoteLife(now);
  if (watch.wants_state != nullptr && watch.wants_state->load(std::memory_order_relaxed)) {
    Follow(watch);
  }
  ReportedLoad report;
  report.running_requests = static_cast<double>(load.running);
  report.waiting_requests = static_cast<double>(load.waiting);
  report.used_tokens = static_cast<double>(load.kv_cells_used);
  report.total_tokens = static_cast<double>(load.kv_cells_total);
  if (load.kv_cells_total > 0) report.token_usage = report.used_tokens / report.total_tokens;
  if (watch.at != TimePoint{} && load.generated_tokens >= watch.tokens) {
    report.throughput =
        static_cast<double>(load.generated_tokens - watch.tokens) / Seconds(now - watch.at);
  }
  if (load.prompt_tokens > 0) {
    report.hit_rate =
        static_cast<double>(load.cached_tokens) / static_cast<double>(load.prompt_tokens);
  }
  report.at = now;
  watch.tokens = load.generated_tokens;
  watch.at = now;
  worker.SetReport(report);
}

bool LocalFleet::StopsWithin(Duration time) {
  const TimePoint until = Clock::now() + time;
  const MutexLock lock(&mutex_);
  while (!stopping_ && wake_.WaitUntil(&mutex_, until)) {
  }
  return stopping_;
}

void LocalFleet::Run() {
  TimePoint next_tick{};
  while (!StopsWithin(kLook)) {
    const TimePoint now = Clock::now();
    for (Watch& watch : watches_) Look(watch, now);
    if (now >= next_tick) {
      policy_->OnTick(now);
      next_tick = now + std::chrono::seconds(1);
    }
  }
}

}  // namespace portico::router
