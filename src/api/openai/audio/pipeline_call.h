// A request that a pipeline answers.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "api/exchange_call.h"
#include "pipeline/coordinator/pipeline.h"

namespace portico::api::openai {

// Takes parts from the pipeline while the client reads, and no more: what it leaves there stops the
// stages. Goes away with the client, which aborts the pipeline's work.
class PipelineCall : public ExchangeCall {
 public:
  using ExchangeCall::ExchangeCall;

  void Abort() override;

  // On failure nothing runs.
  Status Start(pipeline::Request request);

 protected:
  virtual void OnPart(pipeline::Part part) = 0;
  // No more parts are there now.
  virtual void OnPause() {}
  // Once, at the end; then Leave().
  virtual void OnDone(const Status& status) = 0;

  // From OnDone(): cuts the answer off once the client has been sent what was written, and leaves then.
  void CutWhenSent();

 private:
  friend void LaunchPipeline(std::unique_ptr<PipelineCall> call, pipeline::Request request,
                             ShardContext& shard);
  void Pump();

  // Bytes that wait for the client before no more is taken.
  static constexpr size_t kUnsentBytes = 64 << 10;

  std::shared_ptr<std::atomic<uint64_t>> address_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::unique_ptr<pipeline::Call> call_;
  bool done_ = false;
  bool cutting_ = false;
};

// Submits the request, or answers why not.
void LaunchPipeline(std::unique_ptr<PipelineCall> call, pipeline::Request request,
                    ShardContext& shard);

// The pipeline, or UNIMPLEMENTED saying how to start one.
StatusOr<pipeline::Pipeline*> ThePipeline(const ApiContext& api);
// The same for such requests: INVALID_ARGUMENT where no stage answers them.
StatusOr<pipeline::Pipeline*> PipelineFor(const ApiContext& api, pipeline::Task task);

// NOT_FOUND (field "model"): what there is instead, and how clients do that always name a model of OpenAI's. `own`: the pipeline
// answers to its own name, too.
Status NoSuchModel(const ApiContext& api, std::string_view name, bool own);

}  // namespace portico::api::openai
