// A policy: which of the workers that can take a request gets it. One file each, with its rule and
// numbers in the head comment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "router/worker.h"

namespace portico {
struct KvEventBatch;
}  // namespace portico

namespace portico::router {

// Of a prompt's text; what is behind it is cut off.
inline constexpr size_t kMaxPromptText = 256 << 10;

// What is known of a request when its worker is chosen. Valid during the call.
struct RoutingKey {
  std::string_view model = {};  // empty: the request names none
  std::string_view text = {};   // the prompt's characters over HTTP (see PromptText); or empty
  // The prompt over gRPC, and over HTTP where it is token ids (its text is their digits then); else empty.
  std::span<const int32_t> tokens = {};
  std::string_view session = {};  // what a client is recognised by; empty: nothing
  std::string_view rid = {};
  // Of the prompt; over HTTP an estimate (a quarter of the text's bytes), at least 1.
  int64_t prompt_tokens = 1;
};

struct Choice {
  size_t index = 0;         // in the candidates
  std::string_view reason;  // for the log and metrics: "hit", "least loaded"; a literal
  double matched = 0;       // share of the prompt that the worker is believed to hold, 0..1
};

// Of the choices that requests have followed, each attempt counted.
struct PolicyCounts {
  std::atomic<uint64_t> choices{0};
  std::atomic<uint64_t> prompt_tokens{0};
  std::atomic<uint64_t> matched_tokens{0};  // believed to be cached on the worker chosen
};

// What has become of a request that was started on a worker.
struct Outcome {
  bool ok = true;       // a whole answer, of whatever status but 5xx
  Duration to_first{};  // until the first byte of the answer; zero if none came
  Duration took{};
  int64_t completion_tokens = -1;  // -1: not known
  int64_t cached_tokens = -1;      // as the worker says; -1: not known
};

// One for each model's group of workers and role. Thread safe: every shard calls it.
class Policy {
 public:
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;
  // Whether Choose() reads `text` or `tokens`: if not, HTTP bodies are not searched for them.
  virtual bool wants_prompt() const { return false; }
  // Whether Choose() reads what workers report: if not, they are not asked for it often.
  virtual bool wants_reports() const { return false; }

  // `candidates` is not empty, in the order of their numbers, and may miss workers of the group
  // (down, busy, tried before). Nothing may be kept of it.
  virtual Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) = 0;

  // The request goes to `worker`; the prompt tokens that this will compute, for Worker::Start(). Twice for a request that
  // is tried again; the worker need not be the one that Choose() has named.
  virtual int64_t OnStart(Worker& worker, const RoutingKey& key) {
    static_cast<void>(worker);
    return key.prompt_tokens;
  }
  // Once for each OnStart(), after the worker's Finish().
  virtual void OnFinish(Worker& worker, const Outcome& outcome) {
    static_cast<void>(worker);
    static_cast<void>(outcome);
  }

  // The tokens of a prompt that `key` knew as text only. After OnStart(); not of every request.
  virtual void OnPrompt(const RoutingKey& key, std::span<const int32_t> tokens) {
    static_cast<void>(key);
    static_cast<void>(tokens);
  }
  // Whether OnUsage() does anything.
  virtual bool wants_usage() const { return false; }
  // How many tokens the worker has counted in a prompt that `key` knows as text only. Where answers say it, and not of
  // every request.
  virtual void OnUsage(const RoutingKey& key, int64_t prompt_tokens) {
    static_cast<void>(key);
    static_cast<void>(prompt_tokens);
  }
  // Whether OnKvEvents() does anything.
  virtual bool wants_kv_events() const { return false; }
  // What the worker's cache has taken in and let go, in order. `reset`: what was told before does not count any more.
  // False: this cannot be understood without the worker's present state, which is to come with a reset. For workers
  // of other groups nothing happens.
  virtual bool OnKvEvents(const Worker& worker, const KvEventBatch& batch, bool reset) {
    static_cast<void>(worker);
    static_cast<void>(batch);
    static_cast<void>(reset);
    return true;
  }

  // The worker tells nothing any more, until a reset.
  virtual void OnKvEventsLost(const Worker& worker) { static_cast<void>(worker); }

  // The group changes. `worker` lives at least until OnWorkerRemoved() returns; one that is down
  // stays in the group, but OnWorkerLost() says that what it held is gone (it has restarted).
  virtual void OnWorkerAdded(Worker& worker) { static_cast<void>(worker); }
  virtual void OnWorkerRemoved(Worker& worker) { static_cast<void>(worker); }
  virtual void OnWorkerLost(Worker& worker) { static_cast<void>(worker); }

  // Called about once a second from one thread: evictions and adjustments.
  virtual void OnTick(TimePoint now) { static_cast<void>(now); }

  // The request goes where `choice` says.
  void Count(const Choice& choice, const RoutingKey& key) {
    const auto matched = static_cast<double>(key.prompt_tokens) * choice.matched;
    counts_.choices.fetch_add(1, std::memory_order_relaxed);
    counts_.prompt_tokens.fetch_add(static_cast<uint64_t>(key.prompt_tokens),
                                    std::memory_order_relaxed);
    if (matched >= 1) {
      counts_.matched_tokens.fetch_add(static_cast<uint64_t>(matched), std::memory_order_relaxed);
    }
  }
  const PolicyCounts& counts() const { return counts_; }

 private:
  PolicyCounts counts_;
};

}  // namespace portico::router
