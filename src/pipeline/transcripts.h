// What was said in the sound of recent answers, by the sound's id: clients name an answer that they have heard by it.
#pragma once

#include <cstddef>
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

// The last kMost of them with kMostBytes of text. Times are in seconds since 1970. Thread safe.
class Transcripts {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr size_t kMostBytes = size_t{4} << 20;

  // `id` is new.
  void Add(const std::string& id, std::string text, int64_t expires_at) {
    const MutexLock lock(&mutex_);
    bytes_ += text.size();
    by_id_.insert_or_assign(id, Kept{std::move(text), expires_at});
    order_.push_back(id);
    while (order_.size() > kMost || bytes_ > kMostBytes) {
      const auto oldest = by_id_.find(order_.front());
      bytes_ -= oldest->second.text.size();
      by_id_.erase(oldest);
      order_.pop_front();
    }
  }
  std::optional<std::string> Find(std::string_view id, int64_t now) const {
    const MutexLock lock(&mutex_);
    const auto found = by_id_.find(std::string(id));
    if (found == by_id_.end() || found->second.expires_at <= now) return std::nullopt;
    return found->second.text;
  }

 private:
  struct Kept {
    std::string text;
    int64_t expires_at;
  };

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, Kept> by_id_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace portico::pipeline
