// Watches the workers: probes, what they serve, stalls. Lives on a shard of its own (the gateway's
// admin thread), so that nothing clients do delays it.
//
// A worker that is not healthy is probed every down_interval, a healthy one every interval, and one that holds
// requests and has been silent for a second every second; a request that waits for its client is none of these
// (Worker::awaiting()). Such a silent one is also asked to infer
// (/health_generate): a server may answer probes whose engine hangs. Its answer to that is a sign of life. Where
// it has no such route, but vLLM's metrics (engine_steps.h), its steps are, and once it is stalled one token
// that it is asked for; where it has neither, its answer to a probe is. One that holds requests and from which
// nothing has come for stall_timeout, no answer to anything either, is stalled, and so is one whose server
// answers, but which has not inferred, for twice as long; until it has inferred. An idle worker is not asked,
// and the silence of one whose engine has been paused, or gets other weights, says nothing. Of workers that take
// tokens the probe itself is what is asked, and their load, every second meanwhile, is what needs no engine.
//
// A worker that has not answered when it was told to pause, or to go on, or that has been down while it was paused, counts
// as paused until it says otherwise, and is asked, less and less often: vLLM by /is_paused or /is_sleeping, others by
// /health_generate, and workers that take tokens for their engine's state (health_pause.cc). One whose pause is in no doubt
// is asked every interval too: it may be resumed past this gateway.
//
// SGLang's /health infers and is not answered while the engine is paused or gets other weights: of a healthy worker that
// is held back, whatever it answers to /v1/models is the answer to the probe.
//
// Healthy workers are asked for their load every load_interval (load_report.h); one that answers in no
// known form is asked again when it has been down. Of a gateway of prefill and decode workers, one over HTTP that was down or
// is new has to say that it runs as what it is configured as, or nothing of it (pair_mode.h), before it is healthy. Workers that take token ids are watched by the same
// rules with their own calls; a worker whose URL has no scheme is probed as HTTP and as gRPC in turn
// until one of them answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net/loop/shard.h"
#include "router/fleet/engine_steps.h"
#include "router/fleet/small_call.h"
#include "router/fleet/token_workers.h"
#include "router/fleet/worker_clients.h"
#include "router/fleet/worker_set.h"
#include "router/gateway_metrics.h"
#include "router/gateway_options.h"

namespace portico::router {

// What helps a worker that refuses the key it is sent, or wants one.
inline constexpr std::string_view kSetWorkerKey =
    "set its own `api-key` in the file of --config, or api_key in POST /workers";

// Called on the monitor's shard.
struct HealthEvents {
  std::function<void(const WorkerPtr&)> on_stalled;
  // The worker's server has so many data-parallel ranks; only if GatewayOptions::dp_aware.
  std::function<void(const WorkerPtr&, int ranks)> on_ranks;
  std::function<void()> on_tick;  // about ten times a second
};

// Where a server says what it has been started with: SGLang's servers and Portico's have both, older ones the second.
inline constexpr const char* kServerInfoPaths[] = {"/server_info", "/get_server_info"};

class HealthMonitor {
 public:
  // `tokens` may be null.
  HealthMonitor(net::Shard& shard, WorkerRegistry& registry, GatewayMetrics& metrics,
                const GatewayOptions& options, const net::TlsClientContext* tls,
                TokenWorkers* tokens, HealthEvents events);

  // On the shard, like all below.
  void Start();
  void Stop();
  // A connection to the worker has failed or was lost, or it is new: looks at once.
  void ProbeNow(uint64_t number);
  // The workers may serve other models than before: asks all of them at once.
  void AskModelsAgain();

 private:
  struct Watch {
    WorkerPtr worker;
    std::unique_ptr<SmallCall> probe;
    std::unique_ptr<SmallCall> inference;  // whether it infers
    TimePoint next_inference{};
    std::unique_ptr<SmallCall> pause;  // whether it is paused
    bool asking_pause = false;         // by whichever protocol
    uint64_t pause_doubt = 0;          // the one that has been seen
    TimePoint next_pause{};
    Duration pause_wait = Duration::zero();
    TimePoint next_sure{};       // look at a pause that is in no doubt; epoch: none has been seen
    uint64_t sure_requests = 0;  // that the worker had got when it was seen
    bool probes_server = false;  // not its engine, which is held back
    TimePoint answered_at{};     // of what needs no engine too
    bool no_inference = false;   // it has no route for that
    bool no_steps = false;       // nor metrics that tell of steps
    uint64_t steps = 0;          // their mark, if they have been read
    TimePoint steps_at{};        // then
    size_t token_form = 0;       // of those that are tried in turn, once it is stalled
    std::unique_ptr<SmallCall> facts;  // what it serves
    std::unique_ptr<SmallCall> load;
    std::unique_ptr<SmallCall> ranks;
    std::unique_ptr<SmallCall> kv_events;  // where it publishes them
    size_t kv_form = 0;                    // how it is asked
    bool kv_asked = false;
    size_t rank_form = 0;  // how it is asked for them
    bool ranks_known = false;
    bool told_ranks = false;  // in the log: it does not say
    bool probing_tokens = false;
    bool asking_tokens = false;  // for its load
    bool try_tokens = false;     // of a protocol that is not known: what is next
    size_t load_form = 0;        // of those that are tried in turn; beyond them: none
    bool load_known = false;
    TimePoint next_load{};
    TimePoint asked_load_at{};  // of workers that take tokens
    TimePoint next_probe{};
    TimePoint quiet_since{};  // no request waited for it then
    int failures = 0;
    int successes = 0;
    bool told_down = false;  // in the log
    bool told_mode = false;  // likewise, that it works in another mode than its role
    bool been_up = false;
    bool starting = false;  // it has not been up, and says that it is not available yet
    bool facts_known = false;
    bool told_key = false;  // in the log: it wants another API key than the gateway sends
    bool refused = false;   // it was gone, not only slow
    bool was_down = false;  // a probe has failed since it was healthy, or it was stalled
  };

  void Tick();
  void Look(Watch& watch, TimePoint now);
  void Probe(Watch& watch);
  bool Probing(const Watch& watch) const { return watch.probe != nullptr || watch.probing_tokens; }
  void OnProbe(uint64_t number, const StatusOr<SmallAnswer>& answer);
  void ProbeTokens(Watch& watch);
  void OnTokens(Watch& watch, StatusOr<TokenWorkers::Facts> facts);
  void AskTokenLoad(Watch& watch, TimePoint now);
  void OnTokenLoad(Watch& watch, StatusOr<ReportedLoad> load);
  // A function for any thread that runs `take(*this, watch, answer)` with the worker's watch on the monitor's shard, if
  // both are there then.
  template <typename Answer, typename Take>
  absl::AnyInvocable<void(StatusOr<Answer>)> Later(uint64_t number, Take take);
  // What of a worker that holds requests is a sign of life, beside what they are answered.
  enum class Sign {
    kAnswer,     // to a probe, or whatever else it is asked
    kInference,  // what it infers when it is asked to
    kSteps,      // that its metrics say that its engine steps
    kToken,      // a token that it is asked for as a client would
  };
  Sign SignOf(const Watch& watch) const;
  // Whether the answer to a probe is no sign of life.
  bool JudgedByInference(const Watch& watch, TimePoint now) const;
  // Of those that it serves; empty: none is known.
  static std::string ModelToAsk(const Worker& worker);
  // How long a busy engine may take to show that it infers: a step may be long.
  Duration Patience() const;
  void AskToInfer(Watch& watch);
  void OnInference(Watch& watch, const StatusOr<SmallAnswer>& answer, TimePoint now);
  void OnSteps(Watch& watch, const StatusOr<SmallAnswer>& answer, EngineSteps& steps,
               TimePoint now);
  void OnToken(Watch& watch, const StatusOr<SmallAnswer>& answer, TimePoint now);
  void NoteInference(Watch& watch, TimePoint now);
  // One of which it is in doubt is asked whether it is paused.
  void LookAtPause(Watch& watch, TimePoint now);
  // One that is paused without a doubt is asked whether it still is.
  void LookAtSurePause(Watch& watch, TimePoint now);
  enum class PauseAnswer : uint8_t {
    kPaused,
    kGoesOn,
    kAnswers,  // to what only one that infers should; SGLang's servers do while they are paused, too
    kLater,    // it may tell when it is asked again
    kNeverTells,  // it has no way to
  };
  using PauseTold = std::function<void(HealthMonitor&, Watch&, PauseAnswer)>;
  // `field`: of the answer; empty: what infers is not paused.
  static PauseAnswer ReadPause(const StatusOr<SmallAnswer>& answer, std::string_view field);
  void AskPaused(Watch& watch, PauseReading reading, PauseTold told);
  void OnPause(Watch& watch, const PauseDoubt& doubt, PauseAnswer answer);
  void OnGoodProbe(Watch& watch, TimePoint now);
  void OnBadProbe(Watch& watch, const std::string& why, bool gone);
  // Its process does not run.
  void OnEnded(Watch& watch);
  // Of half of a pair that comes up: as which half it runs. The answer is a part of its probe.
  bool WantsMode(const Watch& watch) const;
  void AskMode(Watch& watch, size_t path);
  void OnMode(Watch& watch, size_t path, const StatusOr<SmallAnswer>& answer);
  void AskFacts(Watch& watch);
  bool WantsRanks(const Watch& watch) const;
  void AskRanks(Watch& watch);
  void OnRanks(Watch& watch, const StatusOr<SmallAnswer>& answer);
  // SGLang's servers say where they publish the events of their caches.
  void AskKvEvents(Watch& watch);
  void OnKvEvents(Watch& watch, const StatusOr<SmallAnswer>& answer);
  void AskLoad(Watch& watch, TimePoint now);
  void OnLoad(Watch& watch, const StatusOr<SmallAnswer>& answer);
  // Of the models that it serves.
  void TakeCards(Watch& watch, std::vector<ModelCard> cards);
  std::string Authorization(const Worker& worker) const;
  // A worker's probe needs no key as a rule, but its other routes do: says so once if `status` is that
  // of a refused key.
  void NoteKey(Watch& watch, int status);
  void Change(Watch& watch, Health health, const std::string& why);

  net::Shard& shard_;
  WorkerRegistry& registry_;
  WorkerSetReader reader_;
  GatewayMetrics& metrics_;
  const GatewayOptions& options_;
  WorkerClients clients_;
  TokenWorkers* const tokens_;
  const HealthEvents events_;
  std::shared_ptr<HealthMonitor*> self_;  // for answers that come from other threads
  absl::flat_hash_map<uint64_t, std::unique_ptr<Watch>> watches_;  // by the worker's number
  std::unique_ptr<net::Shard::Timer> timer_;
  uint64_t version_ = 0;
  TimePoint next_policy_tick_{};
};

template <typename Answer, typename Take>
absl::AnyInvocable<void(StatusOr<Answer>)> HealthMonitor::Later(uint64_t number, Take take) {
  return [&shard = shard_, weak = std::weak_ptr<HealthMonitor*>(self_), number,
          take = std::move(take)](StatusOr<Answer> answer) {
    shard.Post([weak, number, take, answer = std::move(answer)]() mutable {
      const auto self = weak.lock();
      if (self == nullptr) return;
      const auto found = (*self)->watches_.find(number);
      if (found == (*self)->watches_.end()) return;
      std::invoke(take, **self, *found->second, std::move(answer));
    });
  };
}

}  // namespace portico::router
