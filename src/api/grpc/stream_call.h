// A streaming generate call while it is answered: TextDeltas in, serialized messages out.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "api/call.h"
#include "api/common/delta_parts.h"
#include "api/common/long_prompt.h"
#include "api/grpc/rpc.h"
#include "service/generation/generation.h"
#include "service/plan/native_plan.h"

namespace portico::api::rpc {

// `Messages` serializes the answer of one prompt:
//   void OnPrompt(const PromptEcho& echo);
//   prompt_form(), TakePrompt(): of LongPromptEncoderOf() (common/long_prompt.h)
//   void OnDelta(const TextDelta& delta, std::string* scratch,
//                absl::FunctionRef<void(std::string_view)> write);   // once a message
//   bool ended() const;                                       // the last one has been given
template <typename Messages>
class StreamRpc final : public Call, public TextSink {
 public:
  // Submits the plan's prompt, or refuses the call.
  static void Start(RpcContext& context, CallPtr call, const ServingModel& model, NativePlan plan,
                    Messages messages) {
    ShardContext& shard = context.ShardOf(*call);
    auto stream = std::make_unique<StreamRpc>(std::move(call), shard, std::move(messages));
    Status status = TakeRids(shard.api.rids, &plan);
    if (status.ok()) status = stream->Submit(model, std::move(plan));
    if (!status.ok()) return Refuse(*stream->call_, shard.api, status);
    shard.calls.Add(std::move(stream));
  }

  StreamRpc(CallPtr call, ShardContext& shard, Messages messages)
      : call_(std::move(call)), shard_(shard), messages_(std::move(messages)) {
    call_->set_on_closed([this](const Status&) { shard_.calls.Remove(this); });
  }

  void Abort() override {
    aborted_ = true;
    generation_->Abort();
  }

  void FreeRids() override {
    if (generation_ != nullptr) generation_->FreeRid();
  }

  void OnPrompt(PromptEcho echo) override { messages_.OnPrompt(echo); }
  PromptEncoder LongPromptEncoder() override { return LongPromptEncoderOf(&messages_); }

  void OnDelta(TextDelta&& delta) override {
    if (done_) return;
    if (delta.finish == FinishReason::kError) return Finish(ErrorOf(delta));
    if (delta.finish == FinishReason::kAbort && aborted_) {
      return Finish(Error(StatusCode::kCancelled, "Request aborted: " + rid));
    }
    messages_.OnDelta(delta, &shard_.scratch,
                      [this](std::string_view message) { call_->Write(message); });
    if (messages_.ended()) Finish(OkStatus());
  }

  void OnEnd(const TokenUsage&) override {}

 private:
  Status Submit(const ServingModel& model, NativePlan plan) {
    GenerationPlan& prompt = plan.prompts.front();
    rid = prompt.options.rid;
    prompt.options.n = plan.n;
    prompt.trace = ParseTraceparent(call_->Metadata("traceparent")).value_or(TraceContext{});
    PORTICO_ASSIGN_OR_RETURN(
        generation_, Generation::Start(model, shard_.hub, *shard_.api.metrics, std::move(prompt),
                                       this, shard_.api.pool));
    return OkStatus();
  }

  // The call goes away, and with it what still runs.
  void Finish(const Status& status) {
    done_ = true;
    Refuse(*call_, shard_.api, status);
    shard_.calls.Remove(this);
  }

  CallPtr call_;
  ShardContext& shard_;
  Messages messages_;
  bool done_ = false;
  bool aborted_ = false;
  std::unique_ptr<Generation> generation_;
};

}  // namespace portico::api::rpc
