// A shard's timers: a binary heap whose entries know their place, so that cancelling costs O(log n)
// and leaves nothing behind. The shard keeps one kernel timer for the earliest.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "net/loop/shard.h"

namespace portico::net {

class TimerQueue {
 public:
  TimerQueue() = default;
  ~TimerQueue();
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  std::unique_ptr<Shard::Timer> Add(TimePoint due, Shard::Task task);
  // Runs what is due at `now`; tasks may add and cancel timers.
  void RunDue(TimePoint now);

  bool empty() const { return heap_.empty(); }
  TimePoint earliest() const;

 private:
  class Node;

  void Remove(size_t place);
  void Place(Node* node, size_t place);
  void Up(size_t place);
  void Down(size_t place);

  std::vector<Node*> heap_;
};

}  // namespace portico::net
