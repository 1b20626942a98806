// What chat and completion streams have in common: which events a delta gives, the frame around
// each choice, usage and the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/openai/answer.h"
#include "message/text_delta.h"
#include "message/text_request.h"

namespace portico::api::openai {

class AnswerStream {
 public:
  // The usage event where asked for, and [DONE].
  void OnEnd(const TokenUsage& total, std::string* out);
  // One error event and [DONE].
  void OnError(const Status& error, std::string* out);
  // [DONE] has been written: later calls append nothing.
  bool ended() const { return ended_; }

 protected:
  AnswerStream(const AnswerHead& head, std::string_view object, const GenerationOptions& options);
  ~AnswerStream() = default;

  struct Events {
    bool content = false;
    bool finish = false;
  };
  // The events that a delta gives. A failed one ends the stream.
  Events EventsOf(const TextDelta& delta, std::string* out);

  // Appends the event up to the choice's index, included.
  void BeginEvent(int32_t index, std::string* out) const;
  // Appends the end of the choice and of the event, with `usage` where every event has it.
  void EndEvent(const TokenUsage& usage, std::string* out) const;
  // Appends `,"finish_reason":…,"matched_stop":…`.
  void AppendFinishReason(const TextDelta& delta, std::string* out) const;

  const bool logprobs_;
  const bool token_ids_;
  const std::string_view calls_reason_;
  // Nothing but the text changes between content events, which end in this (from the text's closing
  // quote on).
  const bool plain_;
  std::string plain_tail_;

 private:
  std::string head_;    // "data: {"id":…,"choices":[{"index":"
  size_t choices_ = 0;  // bytes of it up to the bracket
  const bool include_usage_;
  const bool continuous_usage_;
  bool ended_ = false;
};

}  // namespace portico::api::openai
