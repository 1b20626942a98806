// What the service counts, for each model. The names are part of the API (docs/api.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "message/generate.h"
#include "service/model_registry.h"

namespace portico {

// Of one model; they bear the label model_name.
struct ModelMetrics {
  ModelMetrics(Registry& registry, const ModelRegistry& models, const std::string& model_id);

  // A choice has ended on its own, by abort or by failure.
  void OnFinished(FinishReason reason, Duration since_arrival);

  Counter& refused;
  Counter& aborted;
  Counter& failed;
  Counter& stopped;
  Counter& reached_length;
  Counter& parser_fallbacks;  // text that began like a tool call and was none
  Gauge& held_deltas;         // wait until their prompt has been encoded
  Histogram& time_to_first_token;
  Histogram& inter_token_latency;
  Histogram& e2e_latency;
};

class ServiceMetrics {
 public:
  // Registers everything for the models of these ids, which need not be loaded yet. Gauges ask the engines of
  // `models` when they are read; both outlive the registry's use.
  ServiceMetrics(Registry& registry, const ModelRegistry& models,
                 const std::vector<std::string>& model_ids);

  // The model's id is one of those.
  ModelMetrics& Of(const ServingModel& model);

 private:
  struct Entry {
    std::string id;
    ModelMetrics metrics;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace portico
