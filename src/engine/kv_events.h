// What an engine's prefix cache takes in and lets go, for gateways that route by it. An engine that publishes it is a
// KvEventSource beside an Engine.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/kv_state.h"
#include "message/kv_events.h"

namespace portico {

// Numbers the batches of an engine, keeps the last of them and hands them to who listens. Thread safe.
class KvEventHub {
 public:
  // On the publishing thread, or within Subscribe(). Returns at once, and calls nothing of the hub.
  using Listener = std::function<void(const KvEventBatchPtr& batch)>;

  static constexpr size_t kMaxBatches = 4096;
  // Of the batches that are kept; one that stores or removes several blocks counts as many.
  static constexpr size_t kMaxEvents = size_t{1} << 16;

  // `from`: the first sequence that is wanted; 0: the present state (KvState::Batches) and what comes
  // from now on; without the state if it is too large. Gives the number for
  // Unsubscribe(). OUT_OF_RANGE: it is not kept any more, or beyond the next: the numbers are of an engine before this one.
  StatusOr<uint64_t> Subscribe(uint64_t from, Listener listener);
  void Unsubscribe(uint64_t subscription);
  // Takes the batch; its sequence is set here.
  void Publish(KvEventBatch batch);

 private:
  Mutex mutex_;
  KvState state_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  std::deque<KvEventBatchPtr> kept_ ABSL_GUARDED_BY(mutex_);
  size_t kept_events_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_subscription_ ABSL_GUARDED_BY(mutex_) = 0;
};

class KvEventSource {
 public:
  virtual ~KvEventSource() = default;
  // Null: this one was not told to publish any.
  virtual KvEventHub* kv_events() = 0;
};

}  // namespace portico
