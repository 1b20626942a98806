// What the engines carry, as SGLang's load routes show it (its LoadSnapshot): GET /v1/loads, /get_load
// and gRPC's GetLoad and GetLoads. The data-parallel ranks and workers of all served models are numbered in the order
// of the models.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "service/model_registry.h"
#include "text/json.h"

namespace portico {

// Tokens a second of each rank of each engine. A reading holds for a second; then the next one takes the mean
// since. Thread safe.
class LoadMeter {
 public:
  double TokensPerSecond(const Engine* engine, size_t rank, uint64_t generated, TimePoint now);

 private:
  struct Reading {
    TimePoint at;
    uint64_t generated = 0;
    double rate = 0;
  };
  Mutex mutex_;
  std::map<std::pair<const Engine*, size_t>, Reading> readings_ ABSL_GUARDED_BY(mutex_);
};

// What one rank carries.
struct RankReport {
  const ServingModel* model = nullptr;
  int64_t rank = 0;
  EngineLoad load;
  int64_t max_total_tokens = 0;
  int32_t max_running_requests = 0;
  double tokens_per_second = 0;
  double cache_hit_rate = 0;
};

// Of all ranks, or of that one only; an unknown rank gives none. Empty while loading.
std::vector<RankReport> RankReports(const ModelRegistry& models, LoadMeter& meter,
                                    std::optional<int64_t> rank);

// Which optional parts of a rank's report are wanted.
struct LoadParts {
  bool memory = true;
  bool queues = true;

  // A comma separated list of core, memory, queues, all and the parts that SGLang has beside them (spec,
  // lora, disagg: nothing here has such). INVALID_ARGUMENT (field "include") for another word.
  static StatusOr<LoadParts> Parse(std::string_view include);
};

// RankReports as JSON.
JsonArray LoadReports(const ModelRegistry& models, LoadMeter& meter, std::optional<int64_t> rank,
                      const LoadParts& parts);

// The body of GET /v1/loads: when, which version, the ranks' reports and their sums.
Json LoadsBody(JsonArray reports);

// As the older route and gRPC's GetLoad have it: the ranks' reports in a list, with the names of old.
Json OldLoadsBody(JsonArray reports);

}  // namespace portico
