// What the service counts. The names are part of the API (docs/api.md).
#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "message/generate.h"
#include "service/model_registry.h"

namespace portico {

struct ServiceMetrics {
  // Registers everything. Gauges ask the engines of `models` when they are read; both outlive the registry's use.
  ServiceMetrics(Registry& registry, const ModelRegistry& models);

  // A choice has ended on its own, by abort or by failure.
  void OnFinished(FinishReason reason, Duration since_arrival);

  Counter& aborted;
  Counter& failed;
  Counter& stopped;
  Counter& reached_length;
  Histogram& time_to_first_token;
  Histogram& inter_token_latency;
  Histogram& e2e_latency;
};

}  // namespace portico
