#include "engine/kv_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/mutex.h"

namespace portico {
namespace {

// What it counts for in the bound of what is kept.
size_t WeightOf(const KvEventBatch& batch) {
  size_t weight = 0;
  for (const KvEvent& event : batch.events) {
    weight += std::max<size_t>({1, event.blocks.size(), event.removed.size()});
  }
  return weight;
}

}  // namespace

StatusOr<uint64_t> KvEventHub::Subscribe(uint64_t from, Listener listener) {
  const MutexLock lock(&mutex_);
  if (from > last_sequence_ + 1) {
    return Error(StatusCode::kOutOfRange,
                 fmt::format("the next event has number {}, {} is of another engine",
                             last_sequence_ + 1, from),
                 "start_sequence_number");
  }
  if (from == 0 && last_sequence_ > 0 && state_.complete()) {
    std::vector<KvEventBatch> state = state_.Batches(last_sequence_, kept_.back()->timestamp);
    for (KvEventBatch& batch : state) {
      listener(std::make_shared<const KvEventBatch>(std::move(batch)));
    }
  }
  if (from > 0 && from <= last_sequence_) {
    const uint64_t oldest = kept_.empty() ? last_sequence_ + 1 : kept_.front()->sequence;
    if (from < oldest) {
      return Error(StatusCode::kOutOfRange,
                   fmt::format("events are kept from {} on, {} is gone", oldest, from),
                   "start_sequence_number");
    }
    for (const KvEventBatchPtr& batch : kept_) {
      if (batch->sequence >= from) listener(batch);
    }
  }
  listeners_[++last_subscription_] = std::move(listener);
  return last_subscription_;
}

void KvEventHub::Unsubscribe(uint64_t subscription) {
  const MutexLock lock(&mutex_);
  listeners_.erase(subscription);
}

void KvEventHub::Publish(KvEventBatch batch) {
  const MutexLock lock(&mutex_);
  batch.sequence = ++last_sequence_;
  state_.Apply(batch);
  kept_events_ += WeightOf(batch);
  kept_.push_back(std::make_shared<const KvEventBatch>(std::move(batch)));
  while (kept_.size() > kMaxBatches || (kept_events_ > kMaxEvents && kept_.size() > 1)) {
    kept_events_ -= WeightOf(*kept_.front());
    kept_.pop_front();
  }
  for (const auto& [number, listener] : listeners_) listener(kept_.back());
}

}  // namespace portico
