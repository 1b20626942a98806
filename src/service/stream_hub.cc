#include "service/stream_hub.h"

#include <iterator>
#include <utility>

#include "base/prefetch.h"

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

StreamReceiver* StreamHub::Find(StreamId stream) const {
  const auto it = receivers_.find(stream);
  return it == receivers_.end() ? nullptr : it->second;
}

void StreamHub::PrefetchAhead(size_t i) const {
  for (int steps = 0; steps < kPrefetchSteps; ++steps) {
    const size_t ahead = i + kPrefetchGap * static_cast<size_t>(kPrefetchSteps - steps);
    if (ahead >= taken_.size()) continue;
    const StreamReceiver* receiver = Find(taken_[ahead].stream);
    if (receiver == nullptr) continue;
    if (steps == 0) {
      PrefetchObject(receiver, kReceiverBytes);
    } else {
      receiver->Prefetch(steps);
    }
  }
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
  for (size_t i = 0; i < taken_.size(); ++i) {
    PrefetchAhead(i);
    if (StreamReceiver* receiver = Find(taken_[i].stream)) receiver->OnTokens(taken_[i], now);
  }
  taken_.clear();
}

}  // namespace portico
