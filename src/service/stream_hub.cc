#include "service/stream_hub.h"

#include <iterator>
#include <utility>

namespace portico {

void StreamHub::Deliver(std::vector<TokenDelta> batch) {
  {
    std::unique_lock lock(mutex_);
    drained_.wait(lock, [&] { return closed_ || pending_.size() < kMaxPending; });
    if (closed_) return;
    if (pending_.empty()) {
      pending_.swap(batch);
    } else {
      pending_.insert(pending_.end(), std::make_move_iterator(batch.begin()),
                      std::make_move_iterator(batch.end()));
    }
    if (posted_) return;
    posted_ = true;
  }
  shard_.Post([this] { Drain(); });
}

void StreamHub::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  pending_.clear();
  drained_.notify_all();
}

void StreamHub::Drain() {
  taken_.clear();
  {
    std::lock_guard lock(mutex_);
    taken_.swap(pending_);
    posted_ = false;
  }
  drained_.notify_all();
  TimePoint now = Clock::now();
  for (TokenDelta& delta : taken_) {
    auto it = receivers_.find(delta.stream);
    if (it != receivers_.end()) it->second->OnTokens(std::move(delta), now);
  }
  taken_.clear();
}

}  // namespace portico
