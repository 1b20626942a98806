// The engine of models that give a vector or a row of logits for a text: libllama gives the hidden states of the
// tokens, pooling and heads are here. Which texts are computed together, see pooling_scheduler.h.
//
// The lanes compute; the engine's thread gives a lane that is free its next batch, pools the hidden states of those that
// have ended and delivers each sink its outputs. Lanes do not wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/llama/pooling/pooling_lanes.h"
#include "engine/llama/pooling/pooling_scheduler.h"
#include "engine/llama/step_engine.h"
#include "engine/outbox.h"

namespace portico::llama {

class PoolingEngine final : public StepEngine {
 public:
  PoolingEngine(std::unique_ptr<LlamaModel> model, std::unique_ptr<PoolingLanes> lanes,
                EngineInfo info, const PoolingSchedulerOptions& scheduling,
                std::string description);
  ~PoolingEngine() override { Stop(); }

  Status Submit(GenerateRequest request, TokenSink* sink) override;
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override;
  EngineLoad load() const override;

 private:
  Status FlushCache() override { return OkStatus(); }  // there is none

  // One SubmitPooling.
  struct Request {
    PoolingSink* sink = nullptr;
    size_t texts_left = 0;
    size_t texts_in_batches = 0;
  };
  struct Text final : ScheduledText {
    std::shared_ptr<Request> of;
    std::vector<float> pooled;  // kMean: the sum so far
    size_t lane = 0;            // of the batch that it is in
    bool aborted = false;       // while it was in a batch
  };
  using Texts = std::vector<std::unique_ptr<ScheduledText>>;

  static Text* AsText(ScheduledText* text) { return static_cast<Text*>(text); }

  // The rest is called on the engine's thread.
  bool idle() const override;
  Gathering gathering() const override { return gathering_; }
  bool RunStep() override;
  void EndAborted(StreamId stream) override;
  void EndAll(FinishReason reason, const Status& error) override;
  void Freeze(PauseMode mode) override;
  void Deliver() override;
  void Begin(Batch batch, size_t more);
  void TakeEnded();
  void ExpectAnswers();
  void EndBatch(const PoolingLanes::Ended& ended, FinishReason reason, const Status& error);
  void Pool(const Piece& piece, const PoolingRunner& runner, int32_t first);
  void Answer(Text* text);
  void End(StreamId stream, FinishReason reason, const Status& error);
  void Finish(StreamId stream, PoolingOutput output);

  const std::unique_ptr<LlamaModel> model_;
  const PoolingModel& pooling_;

  std::atomic<int64_t> running_{0};  // requests with a text in a batch
  std::atomic<uint64_t> prompt_tokens_{0};
  std::atomic<uint64_t> batches_{0};

  // The engine's thread only.
  PoolingScheduler scheduler_;
  std::vector<size_t> awaited_;  // by lane: texts of its batch that are not aborted
  bool nothing_fits_ = false;    // what waits is too long for the lanes that are free
  bool batches_ended_ = false;   // since the last RunStep()
  Duration ended_took_{};        // the last of them
  size_t ended_requests_ = 0;    // of whose clients nothing has been expected yet
  Gathering gathering_;
  Outbox<PoolingSink, PoolingOutput> outbox_;

  const std::unique_ptr<PoolingLanes> lanes_;  // gone first: its threads call the engine
};

// As NewLlamaEngine(), for a model with pooling(). Of the options those of requests and threads count.
StatusOr<std::unique_ptr<LlamaEngine>> NewPoolingEngine(std::unique_ptr<LlamaModel> model,
                                                        const LlamaEngineOptions& options,
                                                        int32_t threads);

}  // namespace portico::llama
