// A worker: one engine process behind a URL, as the gateway knows it. Its load and state are
// atomics that every shard and policy reads; its spec never changes (a worker whose spec differs is a new
// one with a new number), but for what operators may change while it is there (WorkerChange).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "router/breaker.h"
#include "router/kv_address.h"

namespace portico::router {

enum class Protocol : uint8_t {
  kHttp,
  kGrpc,
  kUnknown,  // a bare host:port: found out by probes
};
enum class Role : uint8_t { kRegular, kPrefill, kDecode };
inline constexpr Role kRoles[] = {Role::kRegular, Role::kPrefill, Role::kDecode};
// "regular", "prefill" or "decode".
std::string_view RoleName(Role role);
// Who has named a worker. A reload replaces its own.
enum class Source : uint8_t { kConfig, kAdmin, kDiscovery };

// What is configured of a worker.
struct WorkerSpec {
  std::string
      url;  // as given: "http://host:port", "https://…", "grpc://…", "grpcs://…", "host:port"
  Protocol protocol = Protocol::kHttp;
  Role role = Role::kRegular;
  std::string host;  // a name or an address, IPv6 without brackets
  int port = 0;
  bool tls = false;
  std::string path_prefix;          // of the URL, without a slash at its end; mostly empty
  std::vector<std::string> models;  // empty: learnt from the worker; unknown ones match any model
  std::string api_key;              // secret; sent as bearer where the client's is not passed on
  Source source = Source::kConfig;
  int bootstrap_port = 0;    // prefill workers; 0: none
  int dp_rank = -1;          // -1: the worker as a whole
  int dp_size = 0;           // of the server that the rank is of
  int64_t max_requests = 0;  // at a time; 0: what the gateway says
  KvAddress kv_events;       // of HTTP workers; empty: none is named
  std::vector<std::pair<std::string, std::string>> labels;
  // Of smg's, for those who read GET /workers: no policy uses them, as there.
  int64_t priority = 50;
  double cost = 1;
  std::string runtime;  // empty: not named
};

inline constexpr int64_t kMaxWorkerPriority = (int64_t{1} << 32) - 1;

// What operators change of a worker that is there; nothing where it stays.
struct WorkerChange {
  std::optional<bool> draining = {};
  std::optional<std::string> api_key = {};  // empty: none of its own any more
  std::optional<int64_t> max_requests = {};
  std::optional<int64_t> priority = {};
  std::optional<double> cost = {};
  // Those named are set, or removed where they have no value; others stay.
  std::vector<std::pair<std::string, std::optional<std::string>>> labels = {};
};

// The URL without the rank that "http://host:port@rank" names.
std::string_view ServerUrl(const WorkerSpec& spec);
// Whether they are ranks of one server.
inline bool SameServer(const WorkerSpec& a, const WorkerSpec& b) {
  return a.dp_rank >= 0 && b.dp_rank >= 0 && ServerUrl(a) == ServerUrl(b);
}

// Whether they can be in one fleet of prefill and decode workers: any two of it make a pair.
inline bool MakePairs(const WorkerSpec& a, const WorkerSpec& b) {
  return a.role == Role::kRegular || b.role == Role::kRegular || a.protocol == b.protocol;
}
// Whether a worker of this gateway can be half of a pair, but for that: INVALID_ARGUMENT with the field if not.
Status CheckPairWorker(const WorkerSpec& spec, bool dp_aware);

inline constexpr int64_t kMaxWorkerRequests = int64_t{1} << 53;
// The most answers that one request can ask of a worker that takes tokens, over all its prompts.
inline constexpr int64_t kMaxPairRooms = 4096;

// Whether a key can be sent in a header: printable ASCII, nothing that ends a line.
bool IsHeaderKey(std::string_view key);

// Reads a worker's URL into the spec's first fields. INVALID_ARGUMENT with a sentence that names
// the URL.
StatusOr<WorkerSpec> ParseWorkerUrl(std::string_view url);

// What a worker says of a model that it serves.
struct ModelCard {
  std::string id;
  std::string root;           // empty where it does not say
  int64_t created = 0;        // seconds since 1970; 0 where it does not say
  int64_t max_model_len = 0;  // tokens; 0 where it does not say
  bool operator==(const ModelCard&) const = default;
};

// Why an attempt on a worker came to nothing.
enum class AttemptFailure : uint8_t {
  kConnect,    // no connection
  kLost,       // the connection was lost
  kMalformed,  // the answer breaks the protocol
  kStatus,     // a status after which another worker may do better
  kStalled,    // it held the request and sent nothing
};
inline constexpr AttemptFailure kAttemptFailures[] = {
    AttemptFailure::kConnect, AttemptFailure::kLost, AttemptFailure::kMalformed,
    AttemptFailure::kStatus, AttemptFailure::kStalled};
// "connect", "lost", "malformed", "status" or "stalled".
std::string_view AttemptFailureName(AttemptFailure failure);

// What a worker can say that breaks its protocol.
enum class Malformed : uint8_t {
  kAnswer,  // to a request
  kModels,  // of the models that it serves
};
inline constexpr Malformed kMalformedKinds[] = {Malformed::kAnswer, Malformed::kModels};
// "answer" or "models".
std::string_view MalformedName(Malformed kind);

// What a worker has last said of itself (its load report); -1 where it did not say.
struct ReportedLoad {
  double running_requests = -1;
  double waiting_requests = -1;
  double used_tokens = -1;   // KV cells
  double total_tokens = -1;  // KV cells that it has
  double token_usage = -1;   // share of the KV cells in use, 0..1
  double throughput = -1;    // tokens generated per second
  double hit_rate = -1;      // share of prompt tokens found in its cache, 0..1
  TimePoint at{};            // of the report; epoch: none yet
  int64_t own_requests =
      0;  // what this gateway had in flight there then; set by Worker::SetReport()
};

enum class Health : uint8_t {
  kUnknown,  // not probed yet: takes requests only if no other can
  kHealthy,
  kUnhealthy,  // probes fail, or the connection was refused or lost
  kStalled,    // holds requests and sends nothing
};
std::string_view HealthName(Health health);
// "http", "grpc" or "unknown".
std::string_view ProtocolName(Protocol protocol);

// Of an engine, what can sleep by itself (vLLM's /sleep and /wake_up).
inline constexpr uint8_t kWeightsMemory = 1;
inline constexpr uint8_t kCacheMemory = 2;

// What tells whether an HTTP worker is paused.
enum class PauseReading : uint8_t {
  kIsPaused,    // vLLM's /is_paused
  kIsSleeping,  // vLLM's /is_sleeping
  kInference,   // /health_generate: what infers is not paused
};
// A worker that counts as paused and may not be: it has not answered when it was told to pause or to go on, or it has
// been down since.
struct PauseDoubt {
  uint64_t number = 0;  // 0: there is none
  PauseReading reading = PauseReading::kInference;
  bool been_down = false;  // then one that has no way to tell is not paused
};
struct PauseBefore {
  bool paused = false;
  PauseReading reading = PauseReading::kInference;
  PauseDoubt doubt;
};
// A pause that is in no doubt, which somebody may have ended past this gateway.
struct SurePause {
  uint64_t number = 0;  // 0: there is none, or a control is under way
  PauseReading reading = PauseReading::kInference;
};

class Worker {
 public:
  explicit Worker(WorkerSpec spec);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Unique in this process and never used again; rises with each worker made.
  uint64_t number() const { return number_; }
  // What clients and metrics may see instead of the URL: "w1".
  const std::string& id() const { return id_; }
  const WorkerSpec& spec() const { return spec_; }
  const std::string& url() const { return spec_.url; }
  // The spec's, or what a probe has found.
  Protocol protocol() const { return protocol_.load(std::memory_order_relaxed); }
  void SetProtocol(Protocol protocol) { protocol_.store(protocol, std::memory_order_relaxed); }
  TimePoint added() const { return added_; }

  // As the spec has it until somebody changes it. Any thread.
  void Change(const WorkerChange& change);
  // What has been changed of this rank before, of another one of its server, or of the whole before it had ranks.
  void ChangeLike(const Worker& other);
  // Secret; empty: it has none of its own.
  std::string api_key() const;
  // At a time; 0: what the gateway says.
  int64_t max_requests() const { return max_requests_.load(std::memory_order_relaxed); }
  int64_t priority() const { return priority_.load(std::memory_order_relaxed); }
  double cost() const { return cost_.load(std::memory_order_relaxed); }
  std::vector<std::pair<std::string, std::string>> labels() const;

  // In flight through this gateway, on every transport. tokens(): the prefill that is still to do, in prompt tokens as
  // far as the group's policy does not believe them cached (Policy::OnStart()), of requests without a first answer.
  int64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  int64_t tokens() const { return tokens_.load(std::memory_order_relaxed); }
  uint64_t total_requests() const { return total_.load(std::memory_order_relaxed); }

  void Start(int64_t tokens) {
    requests_.fetch_add(1, std::memory_order_relaxed);
    tokens_.fetch_add(tokens, std::memory_order_relaxed);
    total_.fetch_add(1, std::memory_order_relaxed);
  }
  // Once for each Start(): the first byte of the answer has come, or the request is over without.
  void FinishPrefill(int64_t tokens) { tokens_.fetch_sub(tokens, std::memory_order_relaxed); }
  void Finish() { requests_.fetch_sub(1, std::memory_order_relaxed); }

  // Of those in flight, one waits for its client from here to there: for the rest of its body, or until the client has
  // read what there is of the answer. No silence of the worker's keeps it waiting.
  void BeginClientWait() { client_waits_.fetch_add(1, std::memory_order_relaxed); }
  void EndClientWait() { client_waits_.fetch_sub(1, std::memory_order_relaxed); }
  // Of those in flight, the ones that wait for the worker.
  int64_t awaiting() const { return requests() - client_waits_.load(std::memory_order_relaxed); }

  // Attempts that failed, by kind, and those of them after which the request was sent once more, to
  // this worker or another.
  void NoteFailure(AttemptFailure kind) {
    failures_[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t failures(AttemptFailure kind) const {
    return failures_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
  }
  void NoteRetry() { retries_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t retries() const { return retries_.load(std::memory_order_relaxed); }

  // Any thread; readers get a consistent copy.
  void SetReport(const ReportedLoad& load);
  ReportedLoad report() const;

  Health health() const { return health_.load(std::memory_order_relaxed); }
  // True if that changed it.
  bool SetHealth(Health health) { return health_.exchange(health) != health; }
  // Why it is not healthy, for operators; of a healthy one without meaning. Any thread.
  std::string trouble() const;
  void SetTrouble(std::string_view why);
  // Who starts its process has seen it end, and has not started it again: it is down, whatever else is thought of it.
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  // True if that changed it.
  bool SetEnded(bool ended) { return ended_.exchange(ended) != ended; }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }
  void SetDraining(bool draining) { draining_.store(draining, std::memory_order_relaxed); }
  Breaker& breaker() { return breaker_; }
  const Breaker& breaker() const { return breaker_; }

  // When it last became healthy, for policies that start new workers slowly.
  TimePoint healthy_since() const {
    return TimePoint(Duration(healthy_since_.load(std::memory_order_relaxed)));
  }
  void SetHealthySince(TimePoint at) {
    healthy_since_.store(at.time_since_epoch().count(), std::memory_order_relaxed);
  }

  // Anything that came from the worker, for stall detection.
  void NoteLife(TimePoint at) {
    last_life_.store(at.time_since_epoch().count(), std::memory_order_relaxed);
  }
  TimePoint last_life() const {
    return TimePoint(Duration(last_life_.load(std::memory_order_relaxed)));
  }

  // Its engine has been told to pause, or is being given other weights: that nothing comes from it is
  // no illness.
  bool held_back() const {
    return paused() || updating_.load(std::memory_order_relaxed) ||
           controls_.load(std::memory_order_relaxed) > 0;
  }
  // As far as this gateway knows.
  bool paused() const { return paused_.load(std::memory_order_relaxed); }
  // Its engine is told to pause. What it was before, of which a doubt is over until the answer comes.
  PauseBefore BeginPause(PauseReading reading);
  // It has refused to: it is what it was before.
  void RefusePause(const PauseBefore& before);
  // It goes on, with all its memory.
  void EndPause();
  // It counts as paused, if it does so now, until a reading tells otherwise.
  void DoubtPause(bool been_down);
  PauseDoubt pause_doubt() const;
  // What has been read, unless it has been told to pause or to go on since, or has been down. True: that has ended the
  // pause.
  bool SettlePause(const PauseDoubt& doubt, bool paused);
  SurePause sure_pause() const;
  // It says that it goes on, and nothing has been asked of its engine since. True: that has ended the pause.
  bool EndSurePause(const SurePause& pause);
  // Parts of its memory have been put to sleep, or back. True: none sleeps any more.
  void NoteAsleep(uint8_t memory) { asleep_.fetch_or(memory, std::memory_order_relaxed); }
  bool NoteAwake(uint8_t memory) {
    const auto others = static_cast<uint8_t>(~memory);
    return (asleep_.fetch_and(others, std::memory_order_relaxed) & others) == 0;
  }
  // It is within an update of weights that comes in parts.
  void SetUpdating(bool updating) { updating_.store(updating, std::memory_order_relaxed); }
  void BeginControl() { controls_.fetch_add(1, std::memory_order_relaxed); }
  void EndControl();

  // It tells what its cache takes in and lets go, and is believed.
  bool tells_cache() const { return tells_cache_.load(std::memory_order_relaxed); }
  void SetTellsCache(bool tells) { tells_cache_.store(tells, std::memory_order_relaxed); }

  // Where it says that it publishes events of its cache; empty: it does not say.
  KvAddress kv_address() const;
  void SetKvAddress(KvAddress address);

  // What it said broke the protocol. True the first time of its kind.
  bool NoteMalformed(Malformed kind) {
    return malformed_[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed) == 0;
  }
  uint64_t malformed(Malformed kind) const {
    return malformed_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
  }
  // When a connection was lost last on which it may have seen a request; epoch: never. A request that was sent
  // since has not been seen by it, if it was lost too.
  TimePoint last_cut() const {
    return TimePoint(Duration(last_cut_.load(std::memory_order_relaxed)));
  }
  void NoteCut(TimePoint at) {
    last_cut_.store(at.time_since_epoch().count(), std::memory_order_relaxed);
  }

  // The models it serves: the spec's, or what it said.
  std::vector<std::string> models() const;
  void SetModels(std::vector<std::string> models);
  // What it has said of them, and perhaps of others.
  std::vector<ModelCard> cards() const;
  void SetCards(std::vector<ModelCard> cards);

 private:
  void LikePauseOf(const Worker& other);
  void GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Doubt(bool been_down) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerSpec spec_;
  const uint64_t number_;
  const std::string id_;
  const TimePoint added_;
  mutable Mutex mutex_;
  std::vector<std::string> models_ ABSL_GUARDED_BY(mutex_);
  std::vector<ModelCard> cards_ ABSL_GUARDED_BY(mutex_);
  ReportedLoad report_ ABSL_GUARDED_BY(mutex_);
  PauseReading pause_reading_ ABSL_GUARDED_BY(mutex_) = PauseReading::kInference;
  PauseDoubt pause_doubt_ ABSL_GUARDED_BY(mutex_);
  uint64_t pause_doubts_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t pause_changes_ ABSL_GUARDED_BY(mutex_) = 0;  // controls that have ended too
  KvAddress kv_address_ ABSL_GUARDED_BY(mutex_);
  std::string trouble_ ABSL_GUARDED_BY(mutex_);
  std::string api_key_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, std::string>> labels_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_key_;  // spares those without one the lock
  std::atomic<int64_t> max_requests_;
  std::atomic<int64_t> priority_;
  std::atomic<double> cost_;
  Breaker breaker_;
  std::atomic<Protocol> protocol_;
  std::atomic<Health> health_{Health::kUnknown};
  std::atomic<bool> ended_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> paused_{false};  // written under mutex_
  std::atomic<uint8_t> asleep_{0};
  std::atomic<bool> updating_{false};
  std::atomic<int> controls_{0};
  std::atomic<int64_t> client_waits_{0};
  std::array<std::atomic<uint64_t>, std::size(kMalformedKinds)> malformed_{};
  std::atomic<bool> tells_cache_{false};
  std::atomic<int64_t> healthy_since_{0};
  std::atomic<int64_t> last_life_{0};
  std::atomic<int64_t> last_cut_{0};
  std::array<std::atomic<uint64_t>, std::size(kAttemptFailures)> failures_{};
  std::atomic<uint64_t> retries_{0};
  // Written by every request; on lines of their own.
  alignas(64) std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> tokens_{0};
  std::atomic<uint64_t> total_{0};
};

using WorkerPtr = std::shared_ptr<Worker>;

}  // namespace portico::router
