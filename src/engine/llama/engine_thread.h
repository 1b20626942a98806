// The engine of models that generate: what its steps do (step_engine.h has the thread), and what they count.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/llama/kv_cache.h"
#include "engine/llama/model_runner.h"
#include "engine/llama/scheduler.h"
#include "engine/llama/step_engine.h"
#include "engine/llama/stream.h"
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
  std::atomic<uint64_t> steps{0};
};

class EngineThread final : public StepEngine {
 public:
  EngineThread(std::unique_ptr<LlamaModel> model, std::unique_ptr<ModelRunner> runner,
               EngineInfo info, const RunnerOptions& running, const SchedulerOptions& scheduling,
               int32_t kept_sequences, std::string description);
  ~EngineThread() override { Stop(); }

  Status Submit(GenerateRequest request, TokenSink* sink) override;
  EngineLoad load() const override;
  Status FlushCache() override;
  Status UpdateWeights(const std::string& path) override;

 private:
  // A model and its context. In a swap they come in new and go out old.
  struct Weights {
    std::unique_ptr<LlamaModel> model;
    std::unique_ptr<ModelRunner> runner;
    std::promise<void> swapped;
  };

  StatusOr<std::shared_ptr<Weights>> LoadWeights(const std::string& path) const;
  void Swap(Weights* weights);

  bool idle() const override { return scheduler_.running() + scheduler_.waiting() == 0; }
  bool RunStep() override;
  void EndAborted(StreamId stream) override;
  void EndAll(FinishReason reason, const Status& error) override;
  void Freeze(PauseMode mode) override;
  void Deliver() override;
  void Consume(const Chunk& chunk, int32_t first_row);
  void End(StreamId stream, bool keep, FinishReason reason, const Status& error);
  void Count();

  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<ModelRunner> runner_;
  const RunnerOptions runner_options_;
  std::mutex update_mutex_;  // one update at a time; model_ is read with it

  std::atomic<uint64_t> next_seed_;
  EngineCounters counters_;

  // The engine's thread only.
  KvCache cache_;
  Scheduler scheduler_;
  SamplerScratch scratch_;
  Outbox<TokenSink, TokenDelta> outbox_;
};

}  // namespace portico::llama
