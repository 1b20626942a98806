// The answers of POST /generate: text, output_ids and meta_info of each, whole or streamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/sglang/meta_info.h"
#include "base/clock.h"
#include "message/text_delta.h"
#include "service/plan/native_plan.h"

namespace portico::api::sglang {

class GenerateAnswer {
 public:
  // `cumulative`: every event of a stream holds all so far (SGLang's default), else what is new.
  GenerateAnswer(const NativePlan& plan, bool cumulative);

  // What is answered of a prompt.
  struct EncodedPrompt {
    std::string ids;  // 1,2,3, where asked for
    // Its own log-probabilities were asked for and are in `logprobs`.
    bool reported = false;
    LogprobLists logprobs;
  };
  struct PromptForm {
    bool with_ids_of_prompt = false;
    bool with_top = false;
    bool with_text = false;
    bool with_ids = false;
    // Pure.
    EncodedPrompt operator()(const PromptEcho& echo) const;
  };

  // `prompt` is the index in NativePlan::prompts; the deltas' own indexes are choices of it.
  void OnPrompt(size_t prompt, const PromptEcho& echo) {
    TakePrompt(prompt, prompt_form(prompt)(echo));
  }
  PromptForm prompt_form(size_t prompt) const;
  void TakePrompt(size_t prompt, EncodedPrompt encoded);
  // Takes a delta in, and its extras from it. Returns the answer that it belongs to.
  size_t OnDelta(size_t prompt, TextDelta& delta);

  // True if the answer has an event to send: its first tokens, stream_interval more, or its end. Not where a cumulative
  // event would be out of date.
  bool IsDue(size_t answer) const;
  // Appends one event with what that answer has now.
  void AppendEvent(size_t answer, std::string* out);
  // Of all answers' log-probabilities, those of their prompts too: most of a long body.
  size_t LogprobBytes() const;
  // The whole body, after every answer has finished.
  std::string Body();

 private:
  struct Answer {
    size_t prompt = 0;
    std::string text;
    std::string ids;  // 1,2,3
    LogprobLists output;
    TokenUsage usage;
    FinishReason finish = FinishReason::kNone;
    MatchedStop stop;
    std::shared_ptr<const DeltaExtras> extras;  // of its end
    std::string hidden_states;                  // items of a JSON list
    bool prompt_sent = false;
    bool more_at_once = false;  // of the last delta
    int32_t unsent_tokens = 0;
  };

  void AppendAnswer(size_t index, std::string* out);
  void AppendMeta(Answer& answer, std::string* out);
  void AppendLogprobs(Answer& answer, std::string* out);

  struct Prompt {
    std::string rid;
    bool logprobs = false;
    bool with_top = false;
    bool with_ids = false;
    bool with_hidden_states = false;
    bool only_last_hidden_state = false;
    int32_t max_new_tokens = 0;
    int32_t stream_interval = 1;
    bool with_prompt_ids = false;
    EncodedPrompt encoded;
  };

  std::vector<Prompt> prompts_;
  std::vector<Answer> answers_;
  bool is_list_;
  bool stream_;
  bool cumulative_;
  bool text_in_logprobs_;
  TimePoint arrival_;
  std::string weight_version_;  // JSON
};

}  // namespace portico::api::sglang
