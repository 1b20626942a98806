// TextGenerateResponse and GenerateResponse of one request, serialized.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "api/sglang/meta_info.h"
#include "base/clock.h"
#include "message/text_delta.h"
#include "service/plan/native_plan.h"

namespace portico::api::rpc {

class NativeMessages {
 public:
  enum class Form { kText, kIds, kIdsAndText };

  // `plan` has one prompt. `cumulative`: every message of a stream holds all so far, else what is
  // new. A request that is no stream gives one message a choice.
  NativeMessages(const NativePlan& plan, Form form, bool cumulative);

  // Entries of meta_info, serialized.
  struct EncodedPrompt {
    std::string tokens;  // input_token_logprobs
    std::string top;     // input_top_logprobs
  };
  struct PromptForm {
    bool with_top = false;
    bool with_text = false;
    // Pure.
    EncodedPrompt operator()(const PromptEcho& echo) const;
  };

  void OnPrompt(const PromptEcho& echo) { TakePrompt(prompt_form()(echo)); }
  PromptForm prompt_form() const { return {with_top_, text_in_logprobs_}; }
  void TakePrompt(EncodedPrompt encoded) {
    prompt_ = std::move(encoded);
    prompt_reported_ = true;
  }
  // Takes a delta in and appends the message that it gives. False if it gives none: the answer is
  // whole later, or a later message has it.
  bool OnDelta(const TextDelta& delta, std::string* out);
  // The same for StreamRpc (api/grpc/stream_call.h): `scratch` is empty before and after.
  void OnDelta(const TextDelta& delta, std::string* scratch,
               absl::FunctionRef<void(std::string_view)> write) {
    if (OnDelta(delta, scratch)) write(*scratch);
    scratch->clear();
  }
  // The last message has been given.
  bool ended() const { return running_ == 0; }

 private:
  struct Choice {
    std::string head;         // entries of meta_info that seldom change, but finish_reason
    std::string text;         // what is not sent yet, or, cumulative, all
    std::string ids;          // the same, as varints
    int32_t cached = -1;      // the count in `head`
    int32_t retractions = 0;  // in `head`
    sglang::LogprobLists logprobs;
    bool started = false;
  };

  void Gather(const TextDelta& delta, Choice* choice) const;
  void AppendMessage(const TextDelta& delta, Choice* choice, std::string* out);
  void UpdateHead(const TextDelta& delta, Choice* choice) const;
  void AppendLogprobs(const Choice& choice, bool with_prompt, std::string* out) const;

  const Form form_;
  const bool stream_;
  const bool keeps_;  // what has been sent is sent again
  const bool logprobs_;
  const bool with_top_;
  const bool text_in_logprobs_;
  const std::string rid_;
  const TimePoint arrival_;
  std::string weight_version_;  // JSON
  EncodedPrompt prompt_;
  bool prompt_reported_ = false;
  std::vector<Choice> choices_;
  size_t running_;
};

}  // namespace portico::api::rpc
