// One choice of a generation: the state between token deltas. Used by generation.cc only.
#pragma once

#include <optional>
#include <string>

#include "service/generation.h"
#include "tokenizer/stop_matcher.h"
#include "tokenizer/stream_decoder.h"

namespace portico {

class Generation::Choice final : public StreamReceiver {
 public:
  Choice(Generation& owner, int32_t prompt, int32_t index);

  void OnTokens(TokenDelta& delta, TimePoint now) override;
  void Prefetch(int steps) const override;

  StreamId stream = 0;
  const int32_t prompt;
  const int32_t index;
  bool finished = false;
  TokenUsage usage;

 private:
  // The text delta of token i of the engine's delta. True if a stop string matched.
  bool Decode(const TokenDelta& delta, size_t i, TextDelta* out);
  void Finish(TextDelta last, FinishReason reason, TimePoint now);
  void Observe(size_t tokens, TimePoint now);

  // What every token needs comes first and close together.
  TextSink* const sink_;
  Histogram& gaps_;
  TimePoint last_token_{};
  bool prompt_reported_ = false;
  const bool keeps_stop_token_;
  StreamDecoder decoder_;
  std::optional<StopMatcher> stops_;
  Generation& owner_;
  std::string scratch_;
};

}  // namespace portico
