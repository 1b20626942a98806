// Time. One read of the clock a batch, never one a token.
#pragma once

#include <chrono>
#include <cstdint>

namespace portico {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

inline double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// Since 1970, for what clients and files are told.
inline int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace portico
