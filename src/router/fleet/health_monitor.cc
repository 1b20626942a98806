#include "router/fleet/health_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/log.h"
#include "router/fleet/answer_field.h"
#include "router/fleet/stall_limit.h"

namespace portico::router {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kPolicyTick = std::chrono::seconds(1);
// Needs no engine, in SGLang's servers and vLLM's.
constexpr const char* kServerPath = "/v1/models";

net::Http1ClientOptions ClientOptions(const GatewayOptions& options) {
  return {.max_head_bytes = 64 << 10,
          .connect_timeout = std::min(options.connect_timeout, options.health.timeout),
          .idle_life = options.pool_idle,
          .max_idle = 1};
}

// What a server that fails says of itself, if it is a line of OpenAI's or Portico's form.
std::string OwnWords(const SmallAnswer& answer) {
  constexpr size_t kMostWords = 200;
  const std::optional<Json> error = FieldOfAnswer(answer.body, "error");
  std::string words = error && error->is_object() ? error->GetString("message") : std::string();
  const bool plain = words.size() <= kMostWords && IsHeaderKey(words);
  return plain ? words : std::string();
}

// Why a worker that answers a probe of `path` so is not healthy.
std::string WhyRefused(const SmallAnswer& answer, const WorkerSpec& spec, std::string_view path) {
  const int status = answer.status;
  std::string why = fmt::format("its probe returned {}", status);
  const std::string words = status >= 500 ? OwnWords(answer) : std::string();
  if (!words.empty()) why += fmt::format(" ({})", words);
  if (status == 404 && !spec.path_prefix.empty()) {
    why +=
        fmt::format("; it is asked for {0}{1}: leave `{0}` out of its URL", spec.path_prefix, path);
  }
  if (status == 401 || status == 403) why += fmt::format("; {}", kSetWorkerKey);
  return why;
}

// Likewise of one that takes tokens.
std::string WhyFailed(const Status& status) {
  const std::string why(MessageOf(status));
  if (status.code() != StatusCode::kUnauthenticated) return why;
  return fmt::format("it does not accept the gateway's API key, or wants one ({}); {}", why,
                     kSetWorkerKey);
}

}  // namespace

HealthMonitor::HealthMonitor(net::Shard& shard, WorkerRegistry& registry, GatewayMetrics& metrics,
                             const GatewayOptions& options, const net::TlsClientContext* tls,
                             TokenWorkers* tokens, HealthEvents events)
    : shard_(shard),
      registry_(registry),
      reader_(registry),
      metrics_(metrics),
      options_(options),
      clients_(shard, ClientOptions(options), tls, options.upstream_http2),
      tokens_(tokens),
      events_(std::move(events)),
      self_(std::make_shared<HealthMonitor*>(this)) {}

void HealthMonitor::Start() { Tick(); }

void HealthMonitor::Stop() {
  timer_.reset();
  self_.reset();
  watches_.clear();
}

void HealthMonitor::ProbeNow(uint64_t number) {
  const auto found = watches_.find(number);
  if (found == watches_.end()) return Tick();
  Watch& watch = *found->second;
  watch.next_probe = Clock::now();
  if (options_.health.enabled && !watch.worker->ended() && !Probing(watch)) Probe(watch);
}

void HealthMonitor::Tick() {
  const TimePoint now = Clock::now();
  const WorkerSetPtr& set = reader_.Get();
  if (registry_.version() != version_) {
    version_ = registry_.version();
    absl::erase_if(watches_, [&](const auto& entry) {
      return std::none_of(set->workers().begin(), set->workers().end(),
                          [&](const WorkerPtr& one) { return one->number() == entry.first; });
    });
    clients_.Keep(*set);
    for (const WorkerPtr& worker : set->workers()) {
      std::unique_ptr<Watch>& watch = watches_[worker->number()];
      if (watch != nullptr) continue;
      watch = std::make_unique<Watch>();
      watch->worker = worker;
      watch->quiet_since = now;
    }
  }
  for (const auto& [number, watch] : watches_) Look(*watch, now);
  if (now >= next_policy_tick_) {
    registry_.Tick(now);
    if (tokens_ != nullptr) tokens_->Keep(*set);
    next_policy_tick_ = now + kPolicyTick;
  }
  events_.on_tick();
  timer_ = shard_.After(kTick, [this] { Tick(); });
}

void HealthMonitor::Look(Watch& watch, TimePoint now) {
  Worker& worker = *watch.worker;
  const bool takes_tokens = worker.protocol() == Protocol::kGrpc;
  if (takes_tokens && tokens_ == nullptr) return;
  if (worker.ended()) return OnEnded(watch);
  // What is not known yet of a worker only probes find out.
  if (!options_.health.enabled &&
      (worker.protocol() == Protocol::kHttp || worker.health() == Health::kHealthy)) {
    if (worker.health() == Health::kUnknown) OnGoodProbe(watch, now);
    if (worker.health() == Health::kUnhealthy) OnGoodProbe(watch, now);
    if (now >= watch.next_probe && WantsRanks(watch)) AskRanks(watch);
    LookAtPause(watch, now);
    return;
  }
  if (worker.health() == Health::kHealthy && options_.load_interval > Duration::zero() &&
      now >= watch.next_load) {
    if (takes_tokens) {
      AskTokenLoad(watch, now);
    } else if (watch.load == nullptr) {
      AskLoad(watch, now);
    }
  }
  LookAtPause(watch, now);
  if (worker.awaiting() <= 0) watch.quiet_since = now;
  const Duration silent = now - std::max(worker.last_life(), watch.quiet_since);
  if (silent >= kSilence && watch.next_probe > now + kSilence) watch.next_probe = now;
  const bool suspect = silent >= kSilence || worker.health() == Health::kStalled;
  if (suspect && watch.inference == nullptr && now >= watch.next_inference) AskToInfer(watch);
  // Its probe may wait for the engine; what needs none tells whether the server answers.
  if (silent >= kSilence && takes_tokens && now - watch.asked_load_at >= kSilence) {
    AskTokenLoad(watch, now);
  }
  const Duration limit = StallLimit(options_.health.stall_timeout);
  const bool answers = now - watch.answered_at < limit;
  if (limit > Duration::zero() && worker.health() != Health::kStalled &&
      silent >= (answers ? HangLimit(limit, SignOf(watch) == Sign::kSteps) : limit)) {
    watch.inference.reset();  // one on another connection may be answered sooner
    Change(watch, Health::kStalled,
           fmt::format("it holds {} and has sent nothing for {:.0f} s{}",
                       Counted(worker.requests(), "request"), Seconds(silent),
                       answers ? ", though its server answers" : ""));
    events_.on_stalled(watch.worker);
  }
  if (!Probing(watch) && now >= watch.next_probe) Probe(watch);
}

std::string HealthMonitor::Authorization(const Worker& worker) const {
  const std::string own = worker.api_key();
  const std::string& key = own.empty() ? options_.api_key : own;
  return key.empty() ? "" : "Bearer " + key;
}

Duration HealthMonitor::Patience() const {
  return std::max<Duration>(options_.health.timeout,
                            HangLimit(StallLimit(options_.health.stall_timeout), false));
}

void HealthMonitor::ProbeTokens(Watch& watch) {
  watch.probing_tokens = true;
  const bool fresh = watch.worker->health() != Health::kHealthy;
  const bool waits = !fresh && watch.worker->awaiting() > 0;
  tokens_->Probe(watch.worker, fresh, waits ? Patience() : options_.health.timeout,
                 Later<TokenWorkers::Facts>(watch.worker->number(), &HealthMonitor::OnTokens));
}

void HealthMonitor::OnTokens(Watch& watch, StatusOr<TokenWorkers::Facts> facts) {
  const TimePoint now = Clock::now();
  Worker& worker = *watch.worker;
  watch.probing_tokens = false;
  if (worker.ended()) return;  // what it answered is of before
  watch.try_tokens = false;
  watch.next_probe = now + options_.health.down_interval;
  if (!facts.ok()) {
    return OnBadProbe(watch, WhyFailed(facts.status()),
                      facts.status().code() == StatusCode::kUnavailable);
  }
  worker.SetProtocol(Protocol::kGrpc);
  worker.NoteLife(now);
  watch.answered_at = now;
  TakeCards(watch, std::move(facts->models));
  OnGoodProbe(watch, now);
  // One of a server's ranks tells of all of them.
  const WorkerSpec& spec = worker.spec();
  if (options_.dp_aware && spec.dp_rank <= 0 && spec.dp_size != facts->ranks) {
    events_.on_ranks(watch.worker, facts->ranks);
  }
}

void HealthMonitor::AskTokenLoad(Watch& watch, TimePoint now) {
  if (watch.asking_tokens) return;
  watch.next_load = now + options_.load_interval;
  watch.asked_load_at = now;
  watch.asking_tokens = true;
  tokens_->AskLoad(watch.worker, options_.health.timeout,
                   Later<ReportedLoad>(watch.worker->number(), &HealthMonitor::OnTokenLoad));
}

void HealthMonitor::OnTokenLoad(Watch& watch, StatusOr<ReportedLoad> load) {
  watch.asking_tokens = false;
  // A server without such a call answers too.
  if (load.ok() || load.status().code() == StatusCode::kUnimplemented) {
    watch.answered_at = Clock::now();
  }
  if (load.ok() && options_.load_interval > Duration::zero()) watch.worker->SetReport(*load);
}

void HealthMonitor::Probe(Watch& watch) {
  const Worker& worker = *watch.worker;
  const bool unknown = worker.protocol() == Protocol::kUnknown;
  if (tokens_ != nullptr &&
      (worker.protocol() == Protocol::kGrpc || (unknown && watch.try_tokens))) {
    return ProbeTokens(watch);
  }
  watch.probes_server = worker.held_back() && worker.health() == Health::kHealthy;
  watch.probe = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = watch.probes_server ? kServerPath : options_.health.path,
                   .authorization = Authorization(worker),
                   .timeout = options_.health.timeout,
                   .max_bytes = 64 << 10},
      [this, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        OnProbe(number, answer);
      });
}

void HealthMonitor::OnProbe(uint64_t number, const StatusOr<SmallAnswer>& answer) {
  const auto found = watches_.find(number);
  if (found == watches_.end()) return;
  Watch& watch = *found->second;
  const TimePoint now = Clock::now();
  // The probe's own function runs: it is freed at the end of the turn.
  shard_.AtEndOfTurn([probe = std::shared_ptr<SmallCall>(std::move(watch.probe))] {});
  watch.next_probe = now + options_.health.down_interval;
  if (watch.worker->protocol() == Protocol::kUnknown) {
    if (answer.ok()) watch.worker->SetProtocol(Protocol::kHttp);
    // A server of HTTP/2 alone breaks off, or answers what HTTP/1.1 cannot read.
    watch.try_tokens = !answer.ok() && tokens_ != nullptr;
    if (watch.try_tokens) return ProbeTokens(watch);
  }
  if (!answer.ok()) {
    OnBadProbe(watch, std::string(MessageOf(answer.status())),
               answer.status().code() == StatusCode::kUnavailable);
  } else if (watch.probes_server ? answer->status >= 500
                                 : answer->status < 200 || answer->status >= 300) {
    watch.starting = answer->status == 503 && !watch.been_up;
    OnBadProbe(watch,
               WhyRefused(*answer, watch.worker->spec(),
                          watch.probes_server ? kServerPath : options_.health.path),
               false);
  } else {
    watch.answered_at = now;
    const bool waits = watch.worker->awaiting() > 0 || watch.worker->health() == Health::kStalled;
    const bool tells = !waits || !JudgedByInference(watch, now);
    if (tells) watch.worker->NoteLife(now);
    // A server may answer whose engine hangs.
    if (!tells && watch.worker->health() == Health::kStalled) return;
    WantsMode(watch) ? AskMode(watch, 0) : OnGoodProbe(watch, now);
  }
}

void HealthMonitor::OnGoodProbe(Watch& watch, TimePoint now) {
  Worker& worker = *watch.worker;
  watch.failures = 0;
  ++watch.successes;
  if (worker.health() == Health::kHealthy) {
    const bool silent = worker.awaiting() > 0;
    watch.next_probe =
        now + (silent ? std::min(kSilence, options_.health.interval) : options_.health.interval);
  } else if (watch.successes >= options_.health.success_threshold ||
             worker.health() == Health::kUnknown) {
    if (std::exchange(watch.refused, false)) registry_.NoteLost(worker);
    // A lost connection alone does not close it: a worker may answer probes and lose all else.
    if (std::exchange(watch.was_down, false)) {
      worker.breaker().Close();
      worker.DoubtPause(true);
      worker.SetUpdating(false);
      watch.no_inference = false;
      watch.no_steps = false;
      watch.steps_at = {};
      watch.token_form = 0;
    }
    worker.SetHealthySince(now);
    Change(watch, Health::kHealthy, "");
    watch.next_probe = now + options_.health.interval;
    watch.ranks_known = false;
    watch.facts_known = false;
    watch.load_form = 0;  // it may be another program
    watch.load_known = false;
    watch.next_load = now;
    watch.kv_asked = false;
    watch.kv_form = 0;
  }
  if (!watch.facts_known && watch.facts == nullptr && worker.protocol() == Protocol::kHttp) {
    AskFacts(watch);
  }
  if (WantsRanks(watch)) AskRanks(watch);
}

void HealthMonitor::OnBadProbe(Watch& watch, const std::string& why, bool gone) {
  Worker& worker = *watch.worker;
  watch.successes = 0;
  ++watch.failures;
  watch.refused = watch.refused || gone;
  watch.was_down = true;
  if (worker.health() == Health::kStalled) return;
  if (worker.health() == Health::kHealthy && !gone &&
      watch.failures < options_.health.failure_threshold) {
    return;
  }
  Change(watch, Health::kUnhealthy, why);
}

void HealthMonitor::OnEnded(Watch& watch) {
  watch.next_probe = {};  // as soon as it runs again
  watch.probe.reset();    // what it answered is of before
  if (!watch.was_down || watch.worker->health() != Health::kUnhealthy) {
    OnBadProbe(watch, "its process has ended", true);
  }
}

void HealthMonitor::Change(Watch& watch, Health health, const std::string& why) {
  Worker& worker = *watch.worker;
  worker.SetTrouble(why);
  const bool changed = worker.SetHealth(health);
  if (changed) metrics_.health_changes.Add();
  if (health == Health::kStalled) watch.was_down = true;
  if (health == Health::kHealthy) {
    if (changed) LogInfo("worker {} {} is healthy", worker.id(), worker.url());
    watch.told_down = false;
    watch.been_up = true;
  } else if (!std::exchange(watch.told_down, true)) {
    // Who has found it lost before the probes did has told it (Gateway::TakeOut()).
    if (!changed && watch.been_up) return;
    if ((options_.health.starts_workers || watch.starting) && !watch.been_up) {
      return LogInfo("worker {} {} is not up yet: {}", worker.id(), worker.url(), why);
    }
    LogWarning("worker {} {} is {}: {}", worker.id(), worker.url(), HealthName(health), why);
  }
}

}  // namespace portico::router
