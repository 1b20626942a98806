// Time. One read of the clock a batch, never one a token.
#pragma once

#include <chrono>

namespace portico {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

inline double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace portico
