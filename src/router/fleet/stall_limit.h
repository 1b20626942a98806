// How long a worker that requests wait for may send nothing before it is stalled.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace portico::router {

// What it is asked for in silence.
inline constexpr Duration kSilence = std::chrono::seconds(1);
// Of a server that answers, whose engine may be within a long step: 20 s by default, which is SGLang's own limit.
inline constexpr int kHangs = 2;
// The longest time for which a page of steps is good where the limit is shorter.
inline constexpr Duration kStepsLast = std::chrono::seconds(2);

// The limit that counts, of one that is wanted. In less time a silent worker could not answer what it is asked after
// kSilence. Zero: none.
inline Duration StallLimit(Duration wanted) {
  return wanted <= Duration::zero() ? Duration::zero() : std::max<Duration>(wanted, 2 * kSilence);
}

// For how long a page of steps is good; then its server's answers to probes tell again, and the page may have come late.
inline Duration StepsLast(Duration limit) { return std::max(limit, kStepsLast); }

// Of one whose server answers. `by_steps`: its engine is judged by them. The first page comes after kSilence; if the next
// one is late, a probe that is answered behind the time for which the first was good must still be soon enough.
inline Duration HangLimit(Duration limit, bool by_steps) {
  return by_steps ? std::max<Duration>(kHangs * limit, StepsLast(limit) + 4 * kSilence)
                  : kHangs * limit;
}

}  // namespace portico::router
