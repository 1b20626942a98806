// SglangScheduler's GenerateResponse of one request, serialized: chunks with what is new where the
// request streams, and for each choice a last message with its whole answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "message/text_delta.h"
#include "service/plan/native_plan.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"

namespace portico::api::rpc {

class SchedulerMessages {
 public:
  explicit SchedulerMessages(const NativePlan& plan);

  // InputLogProbs, serialized.
  struct PromptForm {
    // Pure.
    std::string operator()(const PromptEcho& echo) const;
  };

  void OnPrompt(const PromptEcho& echo) { TakePrompt(prompt_form()(echo)); }
  PromptForm prompt_form() const { return {}; }
  void TakePrompt(std::string encoded) { prompt_ = std::move(encoded); }
  // As StreamRpc (api/grpc/stream_call.h) wants it. The last delta of a choice gives two messages.
  void OnDelta(const TextDelta& delta, std::string* scratch,
               absl::FunctionRef<void(std::string_view)> write);
  bool ended() const { return running_ == 0; }

 private:
  struct Choice {
    std::vector<TokenId> ids;
    ::sglang::grpc::scheduler::OutputLogProbs logprobs;
    std::shared_ptr<const DeltaExtras> hidden;  // the last that came with hidden states
    bool started = false;
  };

  void FillChunk(const TextDelta& delta, const Choice& choice);
  void FillComplete(const TextDelta& delta, const Choice& choice);
  // `with_prompt`: the prompt's log-probabilities, where there are any, are in the message too.
  void Write(bool with_prompt, std::string* scratch,
             absl::FunctionRef<void(std::string_view)> write) const;

  const bool stream_;
  const bool logprobs_;
  const bool hidden_states_;
  size_t running_;
  std::vector<Choice> choices_;
  std::string prompt_;
  ::sglang::grpc::scheduler::GenerateResponse response_;  // reused
};

}  // namespace portico::api::rpc
