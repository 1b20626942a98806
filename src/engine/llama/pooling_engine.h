// The engine of models that give a vector or a row of logits for a text: libllama gives the hidden states of the
// tokens, pooling and heads are here. Which texts are computed together, see pooling_scheduler.h.
//
// A step computes a micro-batch or several side by side, pools them and delivers each sink its outputs at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/llama/pooling_runners.h"
#include "engine/llama/pooling_scheduler.h"
#include "engine/llama/step_engine.h"
#include "engine/outbox.h"

namespace portico::llama {

class PoolingEngine final : public StepEngine {
 public:
  PoolingEngine(std::unique_ptr<LlamaModel> model, std::unique_ptr<PoolingRunners> runners,
                EngineInfo info, const PoolingSchedulerOptions& scheduling,
                std::string description);
  ~PoolingEngine() override { Stop(); }

  Status Submit(GenerateRequest request, TokenSink* sink) override;
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override;
  EngineLoad load() const override;
  Status FlushCache() override { return OkStatus(); }  // there is none

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

  static Text* AsText(ScheduledText* text) { return static_cast<Text*>(text); }

  // The rest is called on the engine's thread.
  bool idle() const override { return scheduler_.empty(); }
  Gathering gathering() const override { return gathering_; }
  bool RunStep() override;
  void EndAborted(StreamId stream) override;
  void EndAll(FinishReason reason, const Status& error) override;
  void Freeze(PauseMode mode) override;
  void Deliver() override;
  void CountRunning(const std::vector<Piece>& pieces);
  void ExpectAnswersToStep(TimePoint began);
  void EndBatch(const Batch& batch, const PoolingRunner& runner, const Status& status);
  void Pool(const Piece& piece, const PoolingRunner& runner, int32_t first);
  void Answer(Text* text);
  void End(StreamId stream, FinishReason reason, const Status& error);
  void Finish(StreamId stream, PoolingOutput output);

  const std::unique_ptr<LlamaModel> model_;
  const std::unique_ptr<PoolingRunners> runners_;
  const PoolingModel& pooling_;

  std::atomic<int64_t> running_{0};  // requests with a text in the step
  std::atomic<uint64_t> prompt_tokens_{0};
  std::atomic<uint64_t> steps_{0};

  // The engine's thread only.
  PoolingScheduler scheduler_;
  Gathering gathering_;
  size_t ended_requests_ = 0;  // by the step that runs
  Outbox<PoolingSink, PoolingOutput> outbox_;
};

// As NewLlamaEngine(), for a model with pooling(). Of the options those of requests and threads count.
StatusOr<std::unique_ptr<LlamaEngine>> NewPoolingEngine(std::unique_ptr<LlamaModel> model,
                                                        const LlamaEngineOptions& options,
                                                        int32_t threads);

}  // namespace portico::llama
