// One stream of the mock engine: which tokens it answers and when they are due.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/prefetch.h"
#include "engine/engine.h"
#include "engine/mock/mock_faults.h"
#include "message/generate.h"

namespace portico {

// What all streams of an engine share. Immutable.
struct MockModel {
  int32_t vocab_size = 0;
  std::vector<bool> special;  // by token id; ids beyond its end are not special
  Duration ttft{};            // from admission to the first step
  Duration itl{};             // between two steps
  int32_t tokens_per_step = 1;
};

// Used by the engine's thread only.
class MockStream {
 public:
  // `sink` outlives the stream.
  MockStream(GenerateRequest request, TokenSink* sink, MockFaultPlan fault);

  StreamId id() const { return id_; }
  TokenSink* sink() const { return sink_; }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  // KV cells it would hold in a real engine.
  int64_t cells() const { return prompt_tokens() + produced_; }

  void Start(TimePoint now, const MockModel& model);
  bool started() const { return first_due_ != TimePoint{}; }
  // Every due time moves: the stream stood still for so long.
  void Postpone(Duration pause) {
    first_due_ += pause;
    due_ += pause;
  }
  // With many streams a stream's state has left the caches since its last step: these fetch it ahead, the second what
  // the state points to.
  void PrefetchState() const { PrefetchObject(this, 2 * kCacheLine); }
  void PrefetchPrompt() const { __builtin_prefetch(prompt_ + cursor_); }
  // When the next step is due. Started streams only.
  TimePoint due() const { return due_; }

  // What a call of Produce() came to.
  enum class Outcome { kMore, kFinished, kStalled, kEngineDies };

  // Appends every token due by `now`, at most `max_tokens` (at least one step's worth), to `delta`,
  // with the logprobs asked for; sets due() to the next step. kFinished and kEngineDies: `delta` is
  // terminal.
  Outcome Produce(TimePoint now, int32_t max_tokens, const MockModel& model, TokenDelta* delta);

  // The terminal delta of a stream that ends before its time.
  TokenDelta Ended(FinishReason reason, Status error) const;

 private:
  // Tokens of the steps due by `now`, at most `max_tokens`.
  int32_t TokensDue(TimePoint now, int32_t max_tokens, const MockModel& model);
  TokenId NextToken(const MockModel& model);
  bool StopsAt(TokenId token) const;
  PositionLogprobs Logprobs(TokenId token, int64_t position, const MockModel& model) const;
  void AddPromptLogprobs(const MockModel& model, TokenDelta* delta) const;
  TokenUsage Usage() const;

  // What every step needs comes first.
  TimePoint first_due_{};
  TimePoint due_{};
  int64_t steps_ = 0;
  const TokenId* prompt_;
  int32_t prompt_tokens_;
  int32_t cursor_ = 0;  // in the prompt: where the search for the next token starts
  int32_t produced_ = 0;
  int32_t max_new_tokens_;
  StreamId id_;
  TokenSink* sink_;
  MockFaultPlan fault_;
  bool only_special_ = false;  // the prompt has no other token
  bool said_first_ = false;
  const bool return_logprobs_;
  const int32_t min_new_tokens_;
  const std::vector<TokenId>* stop_token_ids_;  // of request_; null: none
  const GenerateRequest request_;
};

}  // namespace portico
