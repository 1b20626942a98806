#include "router/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/log.h"
#include "router/fleet/small_call.h"
#include "router/policy/make_policy.h"

namespace portico::router {
namespace {

constexpr int kAdminShard = 1 << 16;  // its index; those of the server begin at 0

WorkerRegistry::PolicyMaker PolicyMakerOf(const PolicyChoice& choice) {
  return [choice](Role role, const std::string&) -> std::shared_ptr<Policy> {
    return *MakePolicy(choice.of(role), choice.options);  // its name has been checked
  };
}

// Runs `task` on the shard and waits for its end. The shard runs.
void RunOn(net::Shard& shard, absl::AnyInvocable<void()> task) {
  std::promise<void> done;
  shard.Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

Gateway::Gateway(GatewayOptions options, Registry& registry)
    : options_(std::move(options)),
      policy_(options_.policy),
      metrics_(registry, options_.duration_buckets),
      workers_(PolicyMakerOf(policy_)),
      admission_(options_.admission),
      places_(options_.admission.queue),
      worker_max_requests_(options_.worker_max_requests),
      admin_(kAdminShard) {
  workers_.SetAliases(options_.aliases);
}

StatusOr<std::unique_ptr<Gateway>> Gateway::Make(GatewayOptions options, Registry& registry) {
  for (const Role role : kRoles) {
    PORTICO_RETURN_IF_ERROR(MakePolicy(options.policy.of(role), options.policy.options).status());
  }
  std::unique_ptr<Gateway> gateway(new Gateway(std::move(options), registry));
  const GatewayOptions& is = gateway->options_;
  PORTICO_ASSIGN_OR_RETURN(
      gateway->tls_,
      net::TlsClientContext::Load(
          {.ca_files = is.ca_files,
           .certificate = is.client_certificate,
           .key = is.client_key,
           .protocol = is.upstream_http2 ? net::TlsProtocol::kHttp2 : net::TlsProtocol::kHttp1}));
  gateway->admin_.Start();
  return gateway;
}

Gateway::~Gateway() {
  StopWatching();
  admin_.Stop();
}

void Gateway::StopWatching() {
  if (monitor_ == nullptr) return;
  RunOn(admin_, [this] {
    monitor_->Stop();
    monitor_.reset();
    follower_.reset();
  });
}

void Gateway::StartWatching() {
  RunOn(admin_, [this] {
    HealthEvents events;
    events.on_stalled = [this](const WorkerPtr& worker) {
      for (GatewayShard* shard : shards_) {
        shard->shard().Post([shard, number = worker->number()] { shard->OnStalled(number); });
      }
    };
    events.on_ranks = [this](const WorkerPtr& worker, int ranks) {
      // Not while the monitor goes through its workers.
      admin_.Post([this, worker, ranks] { SplitRanks(*worker, ranks); });
    };
    events.on_tick = [this] {
      admission_.Tick();
      sessions_.Tick(Clock::now());
      LookAtPlaces();
      follower_->Keep(*workers_.set(), workers_.version(), workers_.WantsKvEvents());
    };
    follower_ = std::make_unique<KvFollower>(
        options_, metrics_,
        KvFollowerEvents{
            .on_events = [this](Worker& worker, const KvEventBatch& batch,
                                bool reset) { return NoteKvEvents(worker, &batch, reset); },
            .on_lost = [this](Worker& worker) { NoteKvEventsLost(worker); }});
    monitor_ = std::make_unique<HealthMonitor>(admin_, workers_, metrics_, options_, tls_.get(),
                                               tokens_, std::move(events));
    monitor_->Start();
  });
}

Status Gateway::CheckRole(const WorkerSpec& spec) const {
  if ((spec.role == Role::kRegular) == options_.pairs) {
    return Error(StatusCode::kInvalidArgument,
                 options_.pairs ? "this gateway takes prefill and decode workers only"
                                : "prefill and decode workers need --pd-disaggregation",
                 "worker_type");
  }
  return options_.pairs ? CheckPairWorker(spec, options_.dp_aware) : OkStatus();
}

void Gateway::NoteAdded(const Worker& worker) {
  LogInfo("worker {} {} added", worker.id(), worker.url());
  admin_.Post([this, number = worker.number()] {
    if (monitor_ != nullptr) monitor_->ProbeNow(number);
  });
}

void Gateway::NoteModelsChanged() {
  admin_.Post([this] {
    if (monitor_ != nullptr) monitor_->AskModelsAgain();
  });
}

bool Gateway::ReplacePolicy(const PolicyChoice& policy) {
  if (policy == policy_) return false;
  policy_ = policy;
  workers_.ReplacePolicies(PolicyMakerOf(policy_));
  return true;
}

bool Gateway::ReplaceLimits(const AdmissionLimits& admission, int64_t worker_max_requests) {
  bool changed = admission_.Configure(admission);
  changed |= places_.Configure(admission.queue);
  changed |= worker_max_requests_.exchange(worker_max_requests) != worker_max_requests;
  return changed;
}

bool Gateway::Speaks(const Worker& worker) const {
  const Protocol protocol = worker.protocol();
  // Until it is known how many ranks its server has.
  if (options_.dp_aware && worker.spec().dp_rank < 0) return false;
  return protocol == Protocol::kHttp || (protocol == Protocol::kGrpc && tokens_ != nullptr);
}

bool Gateway::Usable(Worker& worker, TimePoint now) const {
  return !worker.draining() && worker.health() == Health::kHealthy && Speaks(worker) &&
         worker.breaker().Allows(now);
}

bool Gateway::HasPlace(const Worker& worker) const {
  const int64_t own = worker.max_requests();
  const int64_t limit = own > 0 ? own : worker_max_requests_.load(std::memory_order_relaxed);
  return limit == 0 || worker.requests() < limit;
}

bool Gateway::NeedNotWait(const WorkerGroup& group) {
  const TimePoint now = Clock::now();
  bool busy = false;
  for (Worker* worker : group.workers) {
    if (!Usable(*worker, now)) continue;
    if (HasPlace(*worker)) return true;
    busy = true;
  }
  return !busy;
}

void Gateway::LookAtPlaces() {
  if (places_.waiting() == 0) return;
  const WorkerSetPtr newest = workers_.set();
  places_.Tick([&](const WorkerSet& set, const WorkerGroup& group) {
    return &set != newest.get() || NeedNotWait(group);
  });
}

StatusOr<Pick> Gateway::Choose(const WorkerGroup& group, const RoutingKey& key, const Tried& tried,
                               uint64_t only) {
  const TimePoint now = Clock::now();
  absl::InlinedVector<Worker*, 64> candidates;
  bool busy = false;
  const auto may_be = [&](const Worker& worker) {
    return (only == 0 || worker.number() == only) &&
           std::find(tried.begin(), tried.end(), worker.number()) == tried.end();
  };
  for (Worker* worker : group.workers) {
    if (!may_be(*worker) || !Usable(*worker, now)) continue;
    HasPlace(*worker) ? candidates.push_back(worker) : void(busy = true);
  }
  if (candidates.empty() && !busy) {
    // A worker that has not been probed yet is better than none.
    for (Worker* worker : group.workers) {
      if (worker->health() == Health::kUnknown && !worker->draining() &&
          worker->protocol() == Protocol::kHttp && Speaks(*worker) && HasPlace(*worker) &&
          may_be(*worker)) {
        candidates.push_back(worker);
      }
    }
  }
  while (!candidates.empty()) {
    const Choice choice = group.policy->Choose({candidates.data(), candidates.size()}, key);
    Worker* worker = candidates[std::min(choice.index, candidates.size() - 1)];
    if (worker->breaker().Begin(now)) {
      group.policy->Count(choice, key);
      return Pick{.worker = worker, .group = &group, .reason = choice.reason};
    }
    candidates.erase(std::find(candidates.begin(), candidates.end(), worker));
  }
  return Error(
      busy ? StatusCode::kResourceExhausted : StatusCode::kUnavailable,
      only == 0 ? WhyNone(group.workers) : "the worker of this session cannot take requests", "",
      "no_available_workers");
}

std::string Gateway::WhyNone(const std::vector<Worker*>& workers) const {
  if (workers.empty()) return "no worker is registered";
  int unhealthy = 0, stalled = 0, open = 0, draining = 0, busy = 0, unknown = 0, without_ranks = 0;
  for (const Worker* worker : workers) {
    if (worker->draining()) {
      ++draining;
    } else if (worker->health() == Health::kStalled) {
      ++stalled;
    } else if (worker->health() != Health::kHealthy) {
      ++unhealthy;
    } else if (!Speaks(*worker)) {
      const bool ranks = options_.dp_aware && worker->spec().dp_rank < 0;
      ++(ranks && worker->protocol() != Protocol::kUnknown ? without_ranks : unknown);
    } else if (worker->breaker().state() != Breaker::State::kClosed) {
      ++open;
    } else {
      ++busy;
    }
  }
  std::string why = workers.size() == 1
                        ? "the only worker cannot take the request:"
                        : fmt::format("none of {} workers can take the request:", workers.size());
  const auto add = [&](int count, std::string_view what) {
    if (count > 0) {
      why += fmt::format("{} {} {}", why.ends_with(':') ? "" : ",", count, what);
    }
  };
  add(unhealthy, "down");
  add(stalled, "stalled");
  add(open, "failing");
  add(draining, "draining");
  add(busy, "busy");
  add(unknown, "not fully probed");
  add(without_ranks, "of unknown dp_size");
  return why;
}

void Gateway::NoteMalformed(Worker& worker, std::string_view why) {
  if (!worker.NoteMalformed(Malformed::kAnswer)) return;
  LogWarning(
      "worker {} {} breaks the protocol: {:.500}; further malformed answers are counted, but not "
      "logged",
      worker.id(), worker.url(), why);
}

void Gateway::NoteLost(Worker& worker, bool reached, std::string_view why) {
  if (reached) worker.NoteCut(Clock::now());
  const WorkerSpec& spec = worker.spec();
  TakeOut(worker, WhyLost(fmt::format("{}:{}", spec.host, spec.port), reached, why));
}

void Gateway::TakeOut(Worker& worker, std::string_view why) {
  const auto note = [this, why](Worker& lost) {
    const bool been_up = lost.health() != Health::kUnknown;
    lost.SetTrouble(why);
    if (!lost.SetHealth(Health::kUnhealthy)) return;
    metrics_.health_changes.Add();
    // Of one that has not been up the monitor tells.
    if (been_up) LogWarning("worker {} {} is unhealthy: {}", lost.id(), lost.url(), why);
    admin_.Post([this, number = lost.number()] {
      if (monitor_ != nullptr) monitor_->ProbeNow(number);
    });
  };
  note(worker);
  if (worker.spec().dp_rank < 0) return;
  // A request must not spend its attempts on the other ranks of a server that is gone.
  const WorkerSetPtr set = workers_.set();
  for (const WorkerPtr& other : set->workers()) {
    if (SameServer(other->spec(), worker.spec())) note(*other);
  }
}

void Gateway::NoteProcess(Worker& worker, bool runs) {
  if (!worker.SetEnded(!runs) || runs) return;
  // One that has not been up is not lost: it is no cause for a warning.
  if (worker.health() != Health::kUnknown) TakeOut(worker, "its process has ended");
}

KvWish Gateway::NoteKvEvents(Worker& worker, const KvEventBatch* batch, bool reset) {
  if (batch != nullptr && !batch->events.empty()) metrics_.kv_event_batches.Add();
  if (reset) metrics_.kv_event_resets.Add();
  const KvWish wish = workers_.OnKvEvents(worker, batch, reset);
  worker.SetTellsCache(wish == KvWish::kMore && (batch != nullptr || worker.tells_cache()));
  return wish;
}

void Gateway::NoteKvEventsLost(Worker& worker) {
  workers_.OnKvEventsLost(worker);
  worker.SetTellsCache(false);
}

Status Gateway::Ready() {
  const WorkerSetPtr set = workers_.set();
  if (!options_.pairs) return ReadyFor(Role::kRegular, *set);
  PORTICO_RETURN_IF_ERROR(ReadyFor(Role::kPrefill, *set));
  return ReadyFor(Role::kDecode, *set);
}

Status Gateway::ReadyFor(Role role, const WorkerSet& set) {
  const TimePoint now = Clock::now();
  for (Worker* worker : set.all(role).workers) {
    if (Usable(*worker, now)) return OkStatus();
  }
  const std::string why = WhyNone(set.all(role).workers);
  return Error(StatusCode::kUnavailable,
               role == Role::kRegular ? why : fmt::format("{}: {}", RoleName(role), why));
}

}  // namespace portico::router
