// How long the turns of a shard's event loop take: while one runs, everything else on the shard waits.
#pragma once

#include "base/clock.h"
#include "base/metrics.h"

namespace portico::net {

// On the shard's thread, except for CountIn().
class TurnTimes {
 public:
  // Counts in two histograms with the label `shard`, before the shard's thread starts. The registry outlives this.
  // Until it is called, nothing is measured.
  //   portico_shard_turn_seconds           every turn, by the clock on the wall
  //   portico_shard_long_turn_cpu_seconds  turns of kLong and more, by the CPU time of the thread: what the turn did itself,
  //                                        and not how long it waited for a processor
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
  // The thread's CPU time is a system call: it is read once in kLong of turns, so that a long turn is measured with an error
  // below that.
  Duration cpu_read_{0};
  Duration since_read_{0};
};

}  // namespace portico::net
