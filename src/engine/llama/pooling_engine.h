// The engine of models that give a vector or a row of logits for a text: libllama gives the hidden states of the
// tokens, pooling and heads are here. Which texts are computed together, see pooling_scheduler.h.
//
// One thread runs steps: take what was submitted and aborted, compute a micro-batch, pool it, deliver each sink its
// outputs at once. It sleeps while there is nothing to do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/llama/llama_engine.h"
#include "engine/llama/pooling_runner.h"
#include "engine/llama/pooling_scheduler.h"
#include "engine/outbox.h"

namespace portico::llama {

class PoolingEngine final : public LlamaEngine {
 public:
  PoolingEngine(std::unique_ptr<LlamaModel> model, std::unique_ptr<PoolingRunner> runner,
                EngineInfo info, const PoolingSchedulerOptions& scheduling,
                std::string description);
  ~PoolingEngine() override { Stop(); }

  const EngineInfo& info() const override { return info_; }
  const std::string& description() const override { return description_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override;
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override;
  void Abort(StreamId stream) override;
  EngineLoad load() const override;
  Status FlushCache() override { return OkStatus(); }  // there is none
  Status Pause(PauseMode mode) override;
  Status Continue() override;
  void Stop() override;

 private:
  // One SubmitPooling.
  struct Request {
    PoolingSink* sink = nullptr;
    size_t texts_left = 0;
    uint64_t step = 0;  // the last one that it was in
  };
  struct Text final : ScheduledText {
    std::shared_ptr<Request> of;
    std::vector<float> pooled;  // kMean: the sum so far
  };
  using Texts = std::vector<std::unique_ptr<ScheduledText>>;

  // What other threads ask of the engine's, in order.
  struct Command {
    enum class Kind { kSubmit, kAbort, kPause, kContinue };
    Kind kind;
    Texts submit{};
    StreamId abort = 0;
    PauseMode pause = PauseMode::kInPlace;
  };

  static Text* AsText(ScheduledText* text) { return static_cast<Text*>(text); }

  Status Gone() const;
  Status Control(Command command, bool paused);
  void Post(Command command);

  // The rest is called on the engine's thread.
  void Loop();
  bool TakeCommands(std::vector<Command>* commands);
  void Apply(Command command);
  void Freeze(PauseMode mode);
  bool RunStep();
  void BeginStep(const std::vector<Piece>& pieces);
  void EndStep();
  void Pool(const Piece& piece, int32_t first);
  void Answer(Text* text);
  void FailStep(const std::vector<Piece>& pieces, const Status& error);
  void Die(const Status& error);
  void End(StreamId stream, FinishReason reason, const Status& error);
  void EndAll(FinishReason reason, const Status& error);
  void Finish(StreamId stream, PoolingOutput output);
  void Deliver();

  const EngineInfo info_;
  const std::string description_;
  const std::unique_ptr<LlamaModel> model_;
  const std::unique_ptr<PoolingRunner> runner_;
  const PoolingModel& pooling_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> commands_;         // guarded by mutex_
  bool stopping_ = false;                 // guarded by mutex_
  std::vector<StreamId> awaited_;         // of the step that runs, not aborted; guarded by mutex_
  std::atomic<bool> paused_{false};       // changes under mutex_ only
  std::atomic<bool> cancel_step_{false};  // changes under mutex_ only
  std::atomic<bool> dead_{false};
  std::atomic<int64_t> in_flight_{0};  // requests accepted and not ended; grows under mutex_ only
  std::atomic<int64_t> running_{0};    // requests with a text in the step
  std::atomic<uint64_t> prompt_tokens_{0};
  std::atomic<uint64_t> steps_{0};

  // The engine's thread only.
  PoolingScheduler scheduler_;
  Outbox<PoolingSink, PoolingOutput> outbox_;
  int64_t ended_ = 0;  // requests whose last output is in the outbox
  int32_t failures_ = 0;
  bool frozen_ = false;  // a pause has reached the engine's thread

  std::once_flag joined_;
  std::thread thread_;
};

// As NewLlamaEngine(), for a model with pooling(). Of the options those of requests and threads count.
StatusOr<std::unique_ptr<LlamaEngine>> NewPoolingEngine(std::unique_ptr<LlamaModel> model,
                                                        const LlamaEngineOptions& options,
                                                        int32_t threads);

}  // namespace portico::llama
