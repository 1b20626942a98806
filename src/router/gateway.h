// The gateway: workers and policies shared by all shards, and what each shard has of its own.
#pragma once

#include <simdjson.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "net/loop/shard.h"
#include "net/tls/tls_client.h"
#include "router/admission_queue.h"
#include "router/fleet/health_monitor.h"
#include "router/fleet/kv_follower.h"
#include "router/fleet/worker_clients.h"
#include "router/fleet/worker_set.h"
#include "router/gateway_metrics.h"
#include "router/gateway_options.h"
#include "router/open_sessions.h"
#include "router/place_queue.h"
#include "router/retry.h"

namespace portico::router {

class ProxyCall;
class WorkerCall;
class GatewayShard;

// Numbers of workers that a request has tried.
using Tried = absl::InlinedVector<uint64_t, 4>;

struct Pick {
  Worker* worker = nullptr;  // of the set that was chosen from
  const WorkerGroup* group = nullptr;
  std::string_view reason;
};

// Thread safe but for what is said.
class Gateway {
 public:
  // Fails for a policy that is none or TLS files that cannot be used. Starts the admin thread.
  static StatusOr<std::unique_ptr<Gateway>> Make(GatewayOptions options, Registry& registry);
  // No shard may use it any more.
  ~Gateway();

  const GatewayOptions& options() const { return options_; }
  WorkerRegistry& workers() { return workers_; }
  GatewayMetrics& metrics() { return metrics_; }
  AdmissionQueue& admission() { return admission_; }
  // Requests that wait for a worker below its limit.
  PlaceQueue& places() { return places_; }
  // Requests that wait in either queue.
  int64_t queued() const { return admission_.waiting() + places_.waiting(); }
  RetryBudget& budget() { return budget_; }
  OpenSessions& sessions() { return sessions_; }
  net::Shard& admin() { return admin_; }
  const net::TlsClientContext* tls() const { return tls_.get(); }
  // Null: workers that take token ids cannot be used.
  TokenWorkers* tokens() const { return tokens_; }
  // Before the shards start; `tokens` outlives their run and StopWatching().
  void UseTokens(TokenWorkers* tokens) { tokens_ = tokens; }

  // INVALID_ARGUMENT for a role that this gateway does not use.
  StatusOr<WorkerPtr> AddWorker(WorkerSpec spec);
  // By id, or by URL: then with all its ranks.
  bool RemoveWorker(std::string_view id_or_url);
  // Adds and removes workers that `source` has named so that there are those of `wanted`, in one
  // step: how many were added and removed. Those that stay keep their state; one of which something
  // that is configured differs is a new one.
  std::pair<int, int> ReplaceWorkers(const std::vector<WorkerSpec>& wanted,
                                     Source source = Source::kConfig);
  // The worker's server has `size` data-parallel ranks: makes a worker of each. Any thread.
  void SplitRanks(const Worker& worker, int size);
  // False if the policies are the same. Their names have been checked.
  bool ReplacePolicy(const PolicyChoice& policy);

  // The worker for a request. The worker's breaker has let the request in. Without one:
  // RESOURCE_EXHAUSTED if a worker that has not been tried could take it but for its limit, else
  // UNAVAILABLE with the reason. `only`: the number of the one worker that can be chosen; 0: any.
  StatusOr<Pick> Choose(const WorkerGroup& group, const RoutingKey& key, const Tried& tried,
                        uint64_t only = 0);

  // A connection to the worker failed or was lost: it is out until a probe is answered, and so are
  // the other ranks of its server. `reached`: it may have seen a request on it. `why`: the reason that the system gives, if any.
  void NoteLost(Worker& worker, bool reached, std::string_view why = {});
  // Of a worker whose process this program starts: whether it runs. One that does not is out; once it does again, probes
  // tell when it is up, and where there are none it counts as healthy. Any thread.
  void NoteProcess(Worker& worker, bool runs);
  // An answer of the worker breaks its protocol: counted, and the first one is logged. Any thread.
  void NoteMalformed(Worker& worker, std::string_view why);
  // Workers have been told to serve other models (adapters): they are asked what they serve. Any thread.
  void NoteModelsChanged();
  // Events of a worker's cache, or null. Any thread.
  KvWish NoteKvEvents(Worker& worker, const KvEventBatch* batch, bool reset);
  // It tells nothing any more, until a reset. Any thread.
  void NoteKvEventsLost(Worker& worker);
  // The first of so many numbers for the two workers of pairs that take tokens. Their protocol has 31 bits for
  // it: no two requests have the same one before all have been used. Any thread.
  int64_t TakeRooms(int64_t count) {
    return 1 +
           static_cast<int64_t>(
               rooms_.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed) % kRooms);
  }
  // What may change while requests run; false if nothing did.
  bool ReplaceLimits(const AdmissionLimits& admission, int64_t worker_max_requests);

  // Whether any worker (of each role that is needed) can take a request, at once or when it has a
  // place; else why not.
  Status Ready();

  // Before the shards start: those whose calls are moved from a stalled worker.
  void Attach(GatewayShard* shard) { shards_.push_back(shard); }
  // Once the shards are attached and run.
  void StartWatching();
  // Before the shards stop.
  void StopWatching();

 private:
  Gateway(GatewayOptions options, Registry& registry);
  // Whether it can take a request, but for its limit.
  bool Usable(Worker& worker, TimePoint now) const;
  // It has less requests than its limit.
  bool HasPlace(const Worker& worker) const;
  // Whether a request of the group need not wait for a place on one of its workers (any more).
  bool NeedNotWait(const WorkerGroup& group);
  void LookAtPlaces();
  // By what its protocol needs; one that is not known yet cannot be used.
  bool Speaks(const Worker& worker) const;
  Status ReadyFor(Role role, const WorkerSet& set);
  std::string WhyNone(const std::vector<Worker*>& workers) const;
  // INVALID_ARGUMENT for a worker that this gateway cannot use.
  Status CheckRole(const WorkerSpec& spec) const;
  void NoteAdded(const Worker& worker);
  // It takes no requests until a probe is answered, nor do the other ranks of its server. Logs `why` if it was up.
  void TakeOut(Worker& worker, std::string_view why);

  const GatewayOptions options_;
  PolicyChoice policy_;  // the one in use; the main thread's
  GatewayMetrics metrics_;
  WorkerRegistry workers_;
  AdmissionQueue admission_;
  PlaceQueue places_;
  std::atomic<int64_t> worker_max_requests_;
  RetryBudget budget_;
  OpenSessions sessions_;
  // Another gateway begins elsewhere.
  static constexpr uint64_t kRooms = (uint64_t{1} << 31) - 1 - kMaxPairRooms;
  std::atomic<uint64_t> rooms_{std::random_device{}()};
  std::unique_ptr<net::TlsClientContext> tls_;
  net::Shard admin_;
  TokenWorkers* tokens_ = nullptr;
  std::unique_ptr<HealthMonitor> monitor_;  // on admin_
  std::unique_ptr<KvFollower> follower_;    // on admin_
  std::vector<GatewayShard*> shards_;
};

// What the gateway has on one shard; touched there only.
class GatewayShard {
 public:
  GatewayShard(net::Shard& shard, Gateway& gateway);
  ~GatewayShard();

  net::Shard& shard() { return shard_; }
  Gateway& gateway() { return gateway_; }
  // The newest set; also drops the connections of workers that are gone.
  const WorkerSetPtr& set();
  WorkerClients& clients() { return clients_; }
  simdjson::ondemand::parser& parser() { return parser_; }
  double Random() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  std::string NewRequestId();
  // Below 2^62, so that the rooms of a batch, which count up from it, fit 63 bits.
  int64_t NewBootstrapRoom() { return static_cast<int64_t>(random_() >> 2); }

  // Calls in flight, owned here.
  void Adopt(std::unique_ptr<ProxyCall> call);
  // Frees the call at the end of the turn.
  void Retire(ProxyCall* call);
  // Calls whose answer nobody wants any more.
  void AdoptRest(std::unique_ptr<WorkerCall> call);
  void RetireRest(WorkerCall* call);
  // Calls on the worker go elsewhere if no byte of their answer has been sent.
  void OnStalled(uint64_t number);
  // Calls in flight. (Not inline: simdjson's parser has another size in tests, which are not optimized.)
  size_t calls() const;

 private:
  net::Shard& shard_;
  Gateway& gateway_;
  WorkerSetReader reader_;
  WorkerClients clients_;
  uint64_t version_ = 0;
  simdjson::ondemand::parser parser_;
  std::mt19937_64 random_;
  absl::flat_hash_map<ProxyCall*, std::unique_ptr<ProxyCall>> calls_;
  absl::flat_hash_map<WorkerCall*, std::unique_ptr<WorkerCall>> rests_;
};

}  // namespace portico::router
