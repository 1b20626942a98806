#include "router/retry.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"

namespace portico::router {

Duration RetryPause(const RetryOptions& options, int attempt, double random) {
  const double grown =
      Seconds(options.initial_backoff) * std::pow(options.multiplier, std::max(0, attempt - 2));
  const double pause = std::min(grown, Seconds(options.max_backoff));
  const double shaken = pause * (1 + options.jitter * (2 * random - 1));
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(shaken));
}

Duration RetryAfter(std::string_view value) {
  constexpr int kMost = 60;
  int seconds = 0;
  if (!absl::SimpleAtoi(std::string(value), &seconds) || seconds < 0) return Duration::zero();
  return std::chrono::seconds(std::min(seconds, kMost));
}

}  // namespace portico::router
