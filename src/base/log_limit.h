// A bound for lines that anyone can cause.
//
//   LogLimit limit(10, std::chrono::seconds(1));
//   if (const auto others = limit.Take(Clock::now())) LogWarning("…{}", AndOthers(*others));
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace portico {

// Thread safe, and without a lock: lines of the same moment may be one or two more.
class LogLimit {
 public:
  // At most `most` lines in each `period`, which begins with its first line.
  constexpr LogLimit(uint32_t most, Duration period) : most_(most), period_(period.count()) {}

  // How many lines have been left out since the last one, where another may be written now; else it is one of them.
  std::optional<uint64_t> Take(TimePoint now) {
    const int64_t at = now.time_since_epoch().count();
    int64_t began = began_.load(std::memory_order_relaxed);
    if (at - began >= period_ &&
        began_.compare_exchange_strong(began, at, std::memory_order_relaxed)) {
      written_.store(0, std::memory_order_relaxed);
    }
    if (written_.load(std::memory_order_relaxed) < most_ &&
        written_.fetch_add(1, std::memory_order_relaxed) < most_) {
      return left_out_.exchange(0, std::memory_order_relaxed);
    }
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }

 private:
  const uint32_t most_;
  const int64_t period_;
  std::atomic<int64_t> began_{0};
  std::atomic<uint32_t> written_{0};
  std::atomic<uint64_t> left_out_{0};
};

// For the end of such a line: nothing, or how many like it are not there.
inline std::string AndOthers(uint64_t left_out) {
  return left_out == 0 ? std::string()
                       : fmt::format(" ({} like it before are not shown)", left_out);
}

}  // namespace portico
