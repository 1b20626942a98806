#pragma once

#include <chrono>

namespace portico {

// Seconds since 1970 with their fraction, for what clients and files are told (UnixSeconds() of clock.h: whole ones).
inline double UnixTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace portico
