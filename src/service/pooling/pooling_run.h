// One request for vectors or logits on its way through an engine. Lives on a shard. Destroying it aborts the texts
// that have no answer yet; not from within its sink's call, which posts the destruction instead.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "message/pooling.h"
#include "service/active_rids.h"
#include "service/pooling/pooling_hub.h"
#include "service/service_metrics.h"
#include "service/serving_model.h"

namespace portico {

struct PoolingPlan {
  struct Text {
    std::shared_ptr<const std::vector<TokenId>> tokens;
    std::vector<uint8_t> token_types;  // one a token, or empty
    std::string lora_path;             // the adapter's name; empty: none
    int32_t data_parallel_rank = -1;   // -1: the engine chooses
  };
  std::vector<Text> texts;  // not empty
  // The request's name, or one name a text, or none.
  std::vector<std::string> rids;
  // Keep `rids` from other requests; the run gives them back before it reports its end.
  std::vector<RidLease> rid_leases;
  TimePoint arrival = Clock::now();
  bool takes_sparse = false;  // else a sparse vector is an error: FAILED_PRECONDITION
  size_t least_values = 0;    // fewer of a text are an error: INTERNAL
};

// Takes the rids of a plan, or none of them: ALREADY_EXISTS where one names a running request.
Status TakeRids(ActiveRids& rids, PoolingPlan* plan);

struct PoolingResult {
  std::vector<PoolingOutput>
      outputs;  // one a text, in their order; all have their values, or are sparse
  std::vector<std::string> rids;  // the plan's
  int64_t prompt_tokens = 0;
  Duration took{};  // since the arrival
};

class PoolingRunSink {
 public:
  virtual ~PoolingRunSink() = default;
  // Exactly once, on the shard, from a later turn than Start(). All texts have ended. ABORTED after an abort, else
  // the engine's error; one text that fails ends the others.
  virtual void OnPooled(StatusOr<PoolingResult> result) = 0;
};

class PoolingRun final : private PoolingReceiver {
 public:
  // Submits all texts or none; fails as Engine::SubmitPooling does. `model`, `hub` and `metrics` outlive the run; so
  // does `sink` until it is destroyed.
  static StatusOr<std::unique_ptr<PoolingRun>> Start(const ServingModel& model, PoolingHub& hub,
                                                     ServiceMetrics& metrics, PoolingPlan plan,
                                                     PoolingRunSink* sink);
  ~PoolingRun() override;
  PoolingRun(const PoolingRun&) = delete;
  PoolingRun& operator=(const PoolingRun&) = delete;

  // Asks the engine to end what runs.
  void Abort();
  // Whether the request, or a text of it, has this name.
  bool HasRid(std::string_view rid) const;
  // Before the end, where the client has left.
  void FreeRids() { rid_leases_.clear(); }

 private:
  PoolingRun(const ServingModel& model, PoolingHub& hub, ModelMetrics& metrics, PoolingPlan plan,
             PoolingRunSink* sink);
  Status Submit();
  void OnOutput(PoolingOutput& output, TimePoint now) override;
  void Report(TimePoint now);
  // As Generation::LogOutcome().
  void LogOutcome(std::string_view end) const;

  const ServingModel& model_;
  PoolingHub& hub_;
  ModelMetrics& metrics_;
  PoolingRunSink* sink_;
  std::vector<std::string> rids_;
  std::vector<RidLease> rid_leases_;
  const TimePoint arrival_;
  const bool takes_sparse_;
  const size_t least_values_;
  std::vector<PoolingPlan::Text> texts_;  // until they are submitted
  StreamId first_ = 0;                    // text i is stream first_ + i
  std::vector<PoolingOutput> outputs_;    // stream 0: not there yet
  size_t running_ = 0;
  Status status_;  // of the first text that did not end well
};

}  // namespace portico
