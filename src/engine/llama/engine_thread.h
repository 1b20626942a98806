// The llama engine's thread and the mailbox in front of it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/llama/kv_cache.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/model_runner.h"
#include "engine/llama/scheduler.h"
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

class EngineThread final : public LlamaEngine {
 public:
  EngineThread(std::unique_ptr<LlamaModel> model, std::unique_ptr<ModelRunner> runner,
               EngineInfo info, const RunnerOptions& running, const SchedulerOptions& scheduling,
               int32_t kept_sequences, std::string description);
  ~EngineThread() override { Stop(); }

  const EngineInfo& info() const override { return info_; }
  const std::string& description() const override { return description_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override;
  void Abort(StreamId stream) override;
  EngineLoad load() const override;
  Status FlushCache() override;
  Status Pause(PauseMode mode) override;
  Status Continue() override;
  Status UpdateWeights(const std::string& path) override;
  void Stop() override;

 private:
  // A model and its context. In a swap they come in new and go out old.
  struct Weights {
    std::unique_ptr<LlamaModel> model;
    std::unique_ptr<ModelRunner> runner;
    std::promise<void> swapped;
  };

  // What other threads ask of the engine's, in order.
  struct Command {
    enum class Kind { kSubmit, kAbort, kFlush, kPause, kContinue, kSwap };
    Kind kind;
    std::unique_ptr<Stream> submit = nullptr;
    StreamId abort = 0;
    PauseMode pause = PauseMode::kInPlace;
    std::shared_ptr<Weights> swap = nullptr;
  };

  Status Gone() const;
  void Post(Command command);
  void Loop();
  bool TakeCommands(std::vector<Command>* commands);
  void Apply(Command command);
  void Freeze(PauseMode mode);
  StatusOr<std::shared_ptr<Weights>> LoadWeights(const std::string& path) const;
  void Swap(Weights* weights);
  bool RunStep();
  void BeginStep(const Step& step);
  void EndStep();
  void Consume(const Chunk& chunk, int32_t first_row);
  void End(StreamId stream, bool keep, FinishReason reason, const Status& error);
  void EndAll(FinishReason reason, const Status& error);
  void FailStep(const Step& step, const Status& error);
  void Die(const Status& error);
  void Deliver();
  void Count();

  const EngineInfo info_;
  const std::string description_;
  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<ModelRunner> runner_;
  const RunnerOptions runner_options_;
  std::mutex update_mutex_;  // one update at a time; model_ is read with it

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> commands_;    // guarded by mutex_
  bool stopping_ = false;            // guarded by mutex_
  bool holds_no_cells_ = false;      // guarded by mutex_: a pause has taken all requests' cells
  std::atomic<bool> paused_{false};  // changes under mutex_ only
  std::vector<StreamId> awaited_;    // of the step that runs, not aborted; guarded by mutex_
  std::atomic<bool> cancel_step_{false};  // changes under mutex_ only
  std::atomic<bool> dead_{false};
  std::atomic<int64_t> in_flight_{0};  // accepted and not ended; grows under mutex_ only
  std::atomic<uint64_t> next_seed_;
  EngineCounters counters_;

  // The engine's thread only.
  KvCache cache_;
  Scheduler scheduler_;
  SamplerScratch scratch_;
  Outbox<TokenSink, TokenDelta> outbox_;
  int64_t ended_ = 0;  // streams whose last delta is in the outbox
  int32_t failures_ = 0;
  bool frozen_ = false;  // a pause has reached the engine's thread

  std::once_flag joined_;
  std::thread thread_;
};

}  // namespace portico::llama
