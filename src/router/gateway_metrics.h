// What the gateway counts.
#pragma once

#include <vector>

#include "base/metrics.h"

namespace portico::router {

struct GatewayMetrics {
  // `duration_bounds`: of the histograms; empty: RequestSecondsBounds().
  GatewayMetrics(Registry& registry, const std::vector<double>& duration_bounds);

  Registry& registry;
  Counter& requests;
  Counter& retries;
  Counter& hedges;
  Counter& failures_connect;  // attempts that failed, by kind
  Counter& failures_lost;
  Counter& failures_malformed;
  Counter& failures_status;
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
};

}  // namespace portico::router
