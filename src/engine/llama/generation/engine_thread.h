// The engine of models that generate: what its steps do (../step_engine.h has the thread), and what they count.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/cpu_pool.h"
#include "base/mutex.h"
#include "engine/kv_events.h"
#include "engine/llama/generation/mask_thread.h"
#include "engine/llama/generation/model_runner.h"
#include "engine/llama/generation/scheduler.h"
#include "engine/llama/generation/stream.h"
#include "engine/llama/kv/block_log.h"
#include "engine/llama/kv/kv_cache.h"
#include "engine/llama/step_engine.h"
#include "engine/outbox.h"

namespace portico::llama {

struct EngineCounters {
  std::atomic<int64_t> running{0};
  std::atomic<int64_t> kv_used{0};
  std::atomic<int64_t> kv_cached{0};
  std::atomic<uint64_t> prompt_tokens{0};
  std::atomic<uint64_t> cached_tokens{0};
  std::atomic<uint64_t> generated_tokens{0};
  std::atomic<uint64_t> retractions{0};
  std::atomic<int64_t> retracted{0};
  std::atomic<uint64_t> steps{0};
};

class EngineThread final : public StepEngine, public KvEventSource {
 public:
  EngineThread(std::unique_ptr<LlamaModel> model, std::unique_ptr<ModelRunner> runner,
               EngineInfo info, const RunnerOptions& running, const SchedulerOptions& scheduling,
               int32_t kept_sequences, bool original_logprobs, std::string description);
  ~EngineThread() override { Stop(); }

  Status Submit(GenerateRequest request, TokenSink* sink) override;
  EngineLoad load() const override;
  void Stop() override;
  KvEventHub* kv_events() override { return &kv_events_; }

 private:
  // A model and its context. In a swap they come in new and go out old.
  struct Weights {
    std::unique_ptr<LlamaModel> model;
    std::unique_ptr<ModelRunner> runner;
    std::promise<void> swapped;
  };

  Status FlushCache() override;
  void UpdateWeights(UpdateWeightsControl update, TimePoint deadline, ControlDone done) override;
  // On the updates' thread.
  Status Update(const UpdateWeightsControl& update, TimePoint deadline);
  StatusOr<std::shared_ptr<Weights>> LoadWeights(const std::string& path) const;
  void Swap(Weights* weights);

  bool idle() const override { return scheduler_.running() + scheduler_.waiting() == 0; }
  bool RunStep() override;
  void EndAborted(StreamId stream) override;
  void EndAll(FinishReason reason, const Status& error) override;
  void Freeze(PauseMode mode) override;
  void Deliver() override;
  void RecordStarts(const Step& step) const;
  void Consume(const Chunk& chunk, int32_t first_row);
  void End(StreamId stream, bool keep, FinishReason reason, const Status& error);
  void Count();

  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<ModelRunner> runner_;
  const RunnerOptions runner_options_;
  const bool original_logprobs_;
  mutable Mutex update_mutex_;
  // One thread, so one update at a time, and model_ is read there. There from the first update to the stop.
  std::unique_ptr<CpuPool> updates_ ABSL_GUARDED_BY(update_mutex_);

  std::atomic<uint64_t> next_seed_;
  EngineCounters counters_;
  KvEventHub kv_events_;

  // The engine's thread only.
  KvCache cache_;
  BlockLog block_log_;
  Scheduler scheduler_;
  SamplerScratch scratch_;
  MaskThread masks_;
  Outbox<TokenSink, TokenDelta> outbox_;
};

}  // namespace portico::llama
