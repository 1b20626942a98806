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

  void OnTokens(TokenDelta delta, TimePoint now) override;

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

  Generation& owner_;
  StreamDecoder decoder_;
  std::optional<StopMatcher> stops_;
  std::string scratch_;
  TimePoint last_token_{};
};

}  // namespace portico
