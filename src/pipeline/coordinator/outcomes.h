// How requests ended, by their ids, for clients that ask afterwards: an answer that is a stream of
// bytes cannot tell.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"

namespace portico::pipeline {

struct Outcome {
  std::string finish_reason;  // "stop", "length", "error"
  std::string error;          // with "error": what the client was told, or would have been
  bool has_usage = false;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

// The last kMost of them. Thread safe.
class Outcomes {
 public:
  static constexpr size_t kMost = 4096;

  void Add(const std::string& id, Outcome outcome) {
    const MutexLock lock(&mutex_);
    if (!by_id_.insert_or_assign(id, std::move(outcome)).second) return;
    order_.push_back(id);
    if (order_.size() <= kMost) return;
    by_id_.erase(order_.front());
    order_.pop_front();
  }
  std::optional<Outcome> Find(std::string_view id) const {
    const MutexLock lock(&mutex_);
    const auto found = by_id_.find(std::string(id));
    if (found == by_id_.end()) return std::nullopt;
    return found->second;
  }

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, Outcome> by_id_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico::pipeline
