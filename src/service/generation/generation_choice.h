// One choice of a generation: the state between token deltas. Used by generation.cc only.
#pragma once

#include <memory>
#include <string>

#include "base/events/recorder.h"
#include "service/generation/generation.h"
#include "service/output/parsed_output.h"
#include "tokenizer/decode/stop_matcher.h"
#include "tokenizer/decode/view_decoder.h"

namespace portico {

class Generation::Choice final : public StreamReceiver {
 public:
  Choice(Generation& owner, int32_t prompt, int32_t index);

  void OnTokens(TokenDelta& delta, TimePoint now) override;
  // The same for a delta whose prompt has been reported. `replayed`: it waited until then.
  void Take(TokenDelta& delta, TimePoint now, bool replayed);
  // Ends the choice and its stream.
  void Fail(const Status& error, TimePoint now);

  StreamId stream = 0;
  const int32_t prompt;
  const int32_t index;
  bool finished = false;
  FinishReason reason = FinishReason::kNone;  // once finished
  TokenUsage usage;
  // Of its deltas with tokens or an end that have to wait for the prompt:
  int32_t held = 0;                       // so many wait
  bool replays = false;                   // one has gone on
  bool caught_up = false;                 // one has gone on that no other followed
  events::Key profiled = events::kNoKey;  // the request in a profile

 private:
  // The text delta of token i of the engine's delta. True if a stop string matched.
  bool Decode(const TokenDelta& delta, size_t i, TextDelta* out);
  // The same where the output is read: token → text → stop strings → reasoning → calls.
  bool DecodeParsed(TokenId token, bool ends_stream, TextDelta* out);
  // What is certain of the text with stop strings. A token that has ended the stream is none of theirs.
  bool LookForStops(TokenId token, bool ends_stream, std::string* text);
  void Finish(TextDelta last, FinishReason why, TimePoint now);
  void Observe(size_t tokens, TimePoint now);
  // A profile's events of the first delta.
  void RecordFirst(size_t tokens) const;

  // What every token needs comes first and close together.
  TextSink* const sink_;
  Histogram& gaps_;
  TimePoint last_token_{};
  bool begun_ = false;            // its first delta has come
  bool prompt_reported_ = false;  // and may be told
  const bool keeps_stop_token_;
  const bool spells_logprobs_;
  std::unique_ptr<StopMatcher> stops_;    // null: none
  std::unique_ptr<ParsedOutput> parsed_;  // null: the output is text
  ViewDecoder decoder_;
  Generation& owner_;
  std::string scratch_;
};

}  // namespace portico
