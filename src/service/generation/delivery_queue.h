// What engines' threads hand to one shard, in batches: the shard is woken at most once for all that gathers
// until it looks.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "net/loop/shard.h"

namespace portico {

template <typename Item>
class DeliveryQueue {
 public:
  // `max_pending`: of items that the shard has not taken; deliverers wait then, so that a shard that does not get
  // on holds its engine back instead of growing without bound.
  DeliveryQueue(net::Shard& shard, size_t max_pending) : shard_(shard), max_pending_(max_pending) {}

  // Any thread. `drain` is run on the shard and takes the items.
  template <typename Drain>
  void Deliver(std::vector<Item> batch, Drain drain) {
    {
      const MutexLock lock(&mutex_);
      while (!closed_ && pending_.size() >= max_pending_) drained_.Wait(&mutex_);
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
    shard_.Post(std::move(drain));
  }

  // On the shard. `items` gets all that has gathered, and gives its memory for what comes next.
  void Take(std::vector<Item>* items) {
    items->clear();
    {
      const MutexLock lock(&mutex_);
      items->swap(pending_);
      posted_ = false;
    }
    drained_.NotifyAll();
  }

  // Items that the shard has not taken. Any thread.
  size_t pending() const {
    const MutexLock lock(&mutex_);
    return pending_.size();
  }

  // Lets waiting deliverers go; from now on batches are dropped. Any thread.
  void Close() {
    const MutexLock lock(&mutex_);
    closed_ = true;
    pending_.clear();
    drained_.NotifyAll();
  }

 private:
  net::Shard& shard_;
  const size_t max_pending_;
  mutable Mutex mutex_;
  CondVar drained_;
  std::vector<Item> pending_ ABSL_GUARDED_BY(mutex_);
  bool posted_ ABSL_GUARDED_BY(mutex_) = false;  // a drain is on its way
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace portico
