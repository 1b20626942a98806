// SglangScheduler's GenerateResponse of one request, serialized: chunks with what is new where the
// request streams, and for each choice a last message with its whole answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "message/text_delta.h"
#include "service/native_plan.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"

namespace portico::api::rpc {

class SchedulerMessages {
 public:
  explicit SchedulerMessages(const NativePlan& plan);

  void OnPrompt(const PromptEcho& echo);
  // As StreamRpc (stream_call.h) wants it. The last delta of a choice gives two messages.
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

  void FillChunk(const TextDelta& delta, Choice& choice);
  void FillComplete(const TextDelta& delta, Choice& choice);
  void Write(std::string* scratch, absl::FunctionRef<void(std::string_view)> write);

  const bool stream_;
  const bool logprobs_;
  const bool hidden_states_;
  size_t running_;
  std::vector<Choice> choices_;
  ::sglang::grpc::scheduler::InputLogProbs prompt_;
  ::sglang::grpc::scheduler::GenerateResponse response_;  // reused
};

}  // namespace portico::api::rpc
