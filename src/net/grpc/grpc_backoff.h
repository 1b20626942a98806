// When to try a lost or refused connection again (gRPC's connection-backoff.md): 1 s after the
// first attempt began, then 1.6 times longer each time, up to 120 s, a fifth more or less.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

#include "base/clock.h"

namespace portico::net {

struct GrpcBackoffOptions {
  Duration initial = std::chrono::seconds(1);
  Duration max = std::chrono::seconds(120);
  double multiplier = 1.6;
  double jitter = 0.2;
};

class GrpcBackoff {
 public:
  explicit GrpcBackoff(const GrpcBackoffOptions& options, uint32_t seed = std::random_device()())
      : options_(options), next_(options.initial), random_(seed) {}

  // From the beginning of the attempt that has failed to that of the next.
  Duration Next() {
    const Duration base = next_;
    next_ = std::min(options_.max, Scaled(base, options_.multiplier));
    std::uniform_real_distribution<double> around(1 - options_.jitter, 1 + options_.jitter);
    return Scaled(base, around(random_));
  }
  void Reset() { next_ = options_.initial; }

 private:
  static Duration Scaled(Duration d, double by) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(Seconds(d) * by));
  }

  GrpcBackoffOptions options_;
  Duration next_;
  std::minstd_rand random_;
};

}  // namespace portico::net
