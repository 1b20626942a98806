// A chat or completion request while it is answered: TextDeltas in, the encoder's bytes out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/common/delta_parts.h"
#include "api/common/long_prompt.h"
#include "api/exchange_call.h"
#include "api/long_answer.h"
#include "api/openai/answer.h"
#include "api/planning.h"
#include "api/reply.h"
#include "net/http/exchange.h"
#include "service/generation/best_of.h"
#include "service/generation/generation.h"

namespace portico::api::openai {

// What whole and streamed calls share: they own the generation.
class TextCall : public ExchangeCall, public TextSink {
 public:
  using ExchangeCall::ExchangeCall;

  // Submits the plan; for Launch().
  Status Start(const ServingModel& model, GenerationPlan&& plan) {
    rid = plan.options.rid;
    plan.trace = Trace();
    if (shard_.api.log_requests && rid.empty() && plan.log_name.empty()) {
      plan.log_name = NewRequestId();
    }
    if (plan.prompts.size() == 1) exchange_->NotePrompt(*plan.prompts.front().ids);
    TextSink* sink = this;
    if (plan.options.best_of > plan.options.n) sink = &best_of_.emplace(&plan, this);
    PORTICO_ASSIGN_OR_RETURN(
        generation_, Generation::Start(model, shard_.hub, *shard_.api.metrics, std::move(plan),
                                       sink, shard_.api.pool));
    OnStarted();
    return OkStatus();
  }

  void Abort() override {
    exchange_->NoteAbort();
    generation_->Abort();
  }
  void FreeRids() override {
    if (generation_ != nullptr) generation_->FreeRid();
  }

 protected:
  // Every stream has been submitted.
  virtual void OnStarted() {}

 private:
  std::optional<BestOf> best_of_;
  std::unique_ptr<Generation> generation_;
};

// Answers in one piece. `Answer` is ChatAnswer or CompletionAnswer.
template <typename Answer>
class WholeCall final : public TextCall {
 public:
  WholeCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, Answer answer)
      : TextCall(std::move(exchange), shard), answer_(std::move(answer)) {}

  void OnPrompt(PromptEcho prompt) override { answer_.OnPrompt(std::move(prompt)); }
  PromptEncoder LongPromptEncoder() override {
    if constexpr (requires(Answer answer) { answer.prompt_form(); }) {
      return LongPromptEncoderOf(&answer_);
    } else {
      return TextSink::LongPromptEncoder();
    }
  }

  void OnDelta(TextDelta&& delta) override {
    if (failed_) return;
    answer_.OnDelta(delta);
    if (answer_.error().ok()) return;
    failed_ = true;
    ReplyError(*exchange_, shard_.api, answer_.error());
    Leave();
  }

  void OnEnd(const TokenUsage& total) override {
    if (failed_) return;
    if constexpr (requires(Answer answer) { answer.LogprobBytes(); }) {
      if (answer_.LogprobBytes() > kLongAnswer) {
        ended_ = true;
        auto encode = [answer = std::move(answer_), total]() mutable { return answer.Body(total); };
        if (EncodeOnPool(*this, shard_, std::move(encode))) return;
        ReplyError(*exchange_, shard_.api, PoolIsFull());
        return Leave();
      }
    }
    SendBody(answer_.Body(total));
  }

  void SendBody(std::string body) {
    ReplyJson(*exchange_, shard_.api, 200, std::move(body));
    Leave();
  }

  // What has ended cannot be aborted while its bytes are put together.
  void Abort() override {
    if (!ended_) TextCall::Abort();
  }

 private:
  Answer answer_;
  bool failed_ = false;
  bool ended_ = false;  // and is encoded on the pool
};

// Answers with server-sent events. `Encoder` is ChatStreamEncoder or CompletionStreamEncoder.
template <typename Encoder>
class StreamCall final : public TextCall {
 public:
  StreamCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, Encoder encoder)
      : TextCall(std::move(exchange), shard), encoder_(std::move(encoder)) {}

  void OnPrompt(PromptEcho prompt) override { encoder_.OnPrompt(std::move(prompt)); }
  PromptEncoder LongPromptEncoder() override {
    if constexpr (requires(Encoder encoder) { encoder.prompt_form(); }) {
      return LongPromptEncoderOf(&encoder_);
    } else {
      return TextSink::LongPromptEncoder();
    }
  }

  void OnDelta(TextDelta&& delta) override {
    if (delta.finish == FinishReason::kError) {
      exchange_->NoteFailure(ErrorResponse(exchange_->request, shard_.api, ErrorOf(delta)));
    }
    encoder_.OnDelta(delta, &shard_.scratch);
    Send();
  }

  void OnEnd(const TokenUsage& total) override {
    encoder_.OnEnd(total, &shard_.scratch);
    Send();
  }

 private:
  void OnStarted() override { StartEvents(); }

  // What the encoder has written to the shard's scratch.
  void Send() {
    std::string& events = shard_.scratch;
    if (!done_) exchange_->Write(events);
    events.clear();
    if (done_) return;
    if (!encoder_.ended()) return;
    done_ = true;
    exchange_->End();
    Leave();
  }

  Encoder encoder_;
  bool done_ = false;
};

}  // namespace portico::api::openai
