// SGLang's sessions that clients have opened here, and the worker that has one's history: every worker
// knows each session, but only the one that has answered its first request knows what was said in it. It is kept
// by its URL, with the rank: a reload may give the same server another number.
//
// At most kMaxSessions are kept (some 20 MB); beyond that, and if their id is longer than kMaxId, new ones are as
// if they were not known: the policy chooses. One that is not used for kIdle is forgotten.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace portico::router {

// Thread safe; nothing is locked while no session is open.
class OpenSessions {
 public:
  static constexpr size_t kMaxSessions = size_t{1} << 16;
  static constexpr size_t kMaxId = 256;
  static constexpr Duration kIdle = std::chrono::hours(4);

  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  void Open(std::string_view id, TimePoint now);
  void Close(std::string_view id);
  // The worker's URL. Nothing: it is not known. Empty: no worker has answered in it yet.
  std::optional<std::string> WorkerOf(std::string_view id);
  // A request of it can be answered.
  void NoteUse(std::string_view id, TimePoint now);
  // The worker of that URL has answered in it. The first one stays.
  void Bind(std::string_view id, std::string_view worker);
  void Tick(TimePoint now);

 private:
  struct Session {
    std::string worker = {};
    TimePoint used;
  };

  void Forget(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<size_t> count_{0};
  Mutex mutex_;
  TimePoint next_ ABSL_GUARDED_BY(mutex_){};
  absl::flat_hash_map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico::router
