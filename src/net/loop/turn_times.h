// How long the turns of a shard's event loop take: while one runs, everything else on the shard waits.
#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/metrics.h"

namespace portico::net {

// On the shard's thread, except for CountIn().
class TurnTimes {
 public:
  // Counts in two histograms with the label `shard`, before the shard's thread starts. The registry outlives this.
  // Until it is called, nothing is measured.
  //   portico_shard_turn_seconds           every turn, by the clock on the wall
  //   portico_shard_long_turn_cpu_seconds  turns of kLong and more, by the CPU time of the thread: not how long they waited for
  //                                        a processor. What the thread did shortly before may be counted with them (below).
  void CountIn(Registry& registry, int shard);

  void Begin() {
    if (wall_ != nullptr) began_ = Clock::now();
  }
  void End() {
    if (wall_ != nullptr) Count(Clock::now() - began_);
  }

  static constexpr Duration kLong = std::chrono::milliseconds(1);

 private:
  void Count(Duration took);

  Histogram* wall_ = nullptr;
  Histogram* cpu_ = nullptr;
  TimePoint began_;
  // The thread's CPU time is a system call, so it is not read for each turn, but when turns of kLong together have passed. A long
  // turn is counted with all that the thread has done since it was read last: the turns before it, which took less than kLong
  // together, and what the event loop did outside of turns. It is never counted with more than it took by the clock on the wall.
  Duration cpu_read_{0};
  Duration since_read_{0};
};

}  // namespace portico::net
