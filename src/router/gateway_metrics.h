// What the gateway counts.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/metrics.h"
#include "router/worker.h"

namespace portico::router {

struct GatewayMetrics {
  // `duration_bounds`: of the histograms; empty: RequestSecondsBounds().
  GatewayMetrics(Registry& registry, const std::vector<double>& duration_bounds);

  Registry& registry;
  Counter& requests;
  // Whole requests by the first digit of their status; 499, the client has left, is one of 4.
  Counter& ended(int status) {
    return *ended_[static_cast<size_t>(std::clamp(status / 100, 1, kStatusClasses)) - 1];
  }
  Counter& retries;
  Counter& hedges;
  Counter& streamed_bodies;  // of requests, passed on before they were whole
  Counter& failures(AttemptFailure kind) { return *failures_[static_cast<size_t>(kind)]; }
  Counter& no_worker;    // 503
  Counter& queue_full;   // 429
  Counter& cut_streams;  // ended with an error event
  Counter& client_gone;
  Counter& health_changes;
  Counter& kv_event_batches;
  Counter& kv_event_resets;
  Counter& kv_event_faults;
  Histogram& seconds;        // whole requests
  Histogram& first_seconds;  // until a worker's first byte

 private:
  static constexpr int kStatusClasses = 5;
  std::array<Counter*, kStatusClasses> ended_{};
  std::array<Counter*, std::size(kAttemptFailures)> failures_{};  // attempts that failed, by kind
};

}  // namespace portico::router
