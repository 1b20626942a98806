#include "base/events/tick_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>

namespace portico::events::internal {
namespace {

// A file of records may say anything.
constexpr double kMostNanoseconds = 9e18;

int64_t Difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace

// The system uses the counter only where it is constant and the same on all processors.
void ChooseTicks() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  file >> source;
  counts_cycles.store(source == "tsc", std::memory_order_relaxed);
#endif
}

// The closest of some readings.
Moment Now() {
  if (!counts_cycles.load(std::memory_order_relaxed)) {
    const int64_t now = Ticks();
    return {now, now};
  }
  Moment best;
  int64_t least = INT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const int64_t before = Ticks();
    const int64_t nanoseconds = Clock::now().time_since_epoch().count();
    const int64_t took = Ticks() - before;
    if (took >= least) continue;
    least = took;
    best = {before + took / 2, nanoseconds};
  }
  return best;
}

void TickScale::Add(const Moment& moment) {
  if (count_ > 0 && moment.ticks <= moments_[(count_ - 1) % kKept].ticks) return;
  moments_[count_ % kKept] = moment;
  ++count_;
}

int64_t TickScale::Nanoseconds(int64_t ticks) const {
  if (count_ == 0) return ticks;
  const size_t oldest = count_ - std::min(count_, kKept);
  size_t at = count_ - 1;  // the moment before the event, where there is one behind it, too
  if (at > oldest) --at;
  while (at > oldest && moments_[at % kKept].ticks > ticks) --at;
  const Moment& from = moments_[at % kKept];
  double rate = 1;
  if (at + 1 < count_) {
    const Moment& to = moments_[(at + 1) % kKept];
    rate = static_cast<double>(Difference(to.nanoseconds, from.nanoseconds)) /
           static_cast<double>(Difference(to.ticks, from.ticks));
  }
  const double after = static_cast<double>(Difference(ticks, from.ticks)) * rate;
  if (!(std::abs(after) < kMostNanoseconds)) return from.nanoseconds;
  return Difference(from.nanoseconds, -static_cast<int64_t>(after));
}

}  // namespace portico::events::internal
