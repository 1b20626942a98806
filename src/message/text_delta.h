// What a service returns: text (DESIGN: TextDelta). Whole answers are the same deltas, collected.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "message/generate.h"

namespace portico {

// A token as clients see it in `logprobs`.
struct TextLogprob {
  TokenId token = 0;
  std::string text;   // what it adds to the text where it stands: `bytes`, spelled as text
  std::string bytes;  // of a part of a character that part
  std::optional<float> logprob;  // absent for the first prompt token
};

struct TextPositionLogprobs {
  TextLogprob chosen;
  std::vector<TextLogprob> top;     // best first
  std::vector<TextLogprob> of_ids;  // those asked for by id, in their order
  bool hidden = false;              // the text leaves the chosen token out
};

// What ended an answer beside its length: a stop string or a stop token.
struct MatchedStop {
  std::string text;    // the stop string, if it was one
  TokenId token = -1;  // the stop token, if it was one
  bool any() const { return !text.empty() || token >= 0; }
};

// What is new of a tool call. The first piece of a call has its name and its id; the last has `ends`.
struct ToolCallPiece {
  int32_t index = 0;      // among the choice's calls
  std::string id;         // with the name
  std::string name;       // of the first piece only
  std::string arguments;  // JSON, or a part of it
  bool ends = false;
  bool complete = false;   // with `ends`: the model finished it, and its arguments are a JSON value
  size_t text_before = 0;  // bytes of the delta's text that the model wrote before this piece
};

// One token of one choice; or, with no token, text that was held back, or the end. The last delta of a choice has
// `finish` set. Deltas of different choices interleave.
struct TextDelta {
  int32_t index = 0;      // choice: prompt * n + i
  std::string text;       // what the model says to the user; whole characters only; often empty
  std::string reasoning;  // what it says to itself
  std::vector<ToolCallPiece> calls;  // in their order
  bool parsed = false;  // the output is read: a token without a piece is held, or is a marker
  absl::InlinedVector<TokenId, 2> tokens;      // at most one but in the last
  std::vector<TextPositionLogprobs> logprobs;  // one a token, where asked for
  FinishReason finish = FinishReason::kNone;
  MatchedStop matched_stop;
  bool ends_in_calls = false;  // with kStop: the choice has calls, and the model finished the last
  // The choice's next delta is there already: an event with all so far would be out of date. Not in the last.
  bool more_at_once = false;
  TokenUsage usage;  // of this choice so far
  Status error;      // with kError
  // Of the engine's delta that this is the first of; null: none. Shared: who keeps deltas copies them.
  std::shared_ptr<const DeltaExtras> extras;
};

// Facts of one prompt of the request, known before its first delta.
struct PromptEcho {
  int32_t prompt = 0;  // index of the prompt
  std::string text;    // the prompt, decoded, where it is echoed
  std::vector<TokenId> tokens;
  std::vector<TextPositionLogprobs> logprobs;  // one a prompt token, where asked for
};

// Encodes a prompt for a sink: pure, on any thread, once, perhaps after the sink has gone. What it returns the sink's shard
// runs in place of OnPrompt(), if the sink is still there.
using PromptTaken = absl::AnyInvocable<void()>;
using PromptEncoder = absl::AnyInvocable<PromptTaken(PromptEcho)>;

// Receives the answer to one request. All calls come on the request's shard. None of them may destroy the
// generation that calls; post that to the shard.
class TextSink {
 public:
  virtual ~TextSink() = default;
  // With echo, or where prompt token ids were asked for: before the prompt's first delta. Not where the request is
  // aborted before a long prompt is encoded.
  virtual void OnPrompt(PromptEcho echo) = 0;
  // For a prompt with so many log-probabilities that it is encoded off the shard.
  virtual PromptEncoder LongPromptEncoder() {
    return [this](PromptEcho echo) -> PromptTaken {
      return [this, echo = std::move(echo)]() mutable { OnPrompt(std::move(echo)); };
    };
  }
  // May move from `delta`.
  virtual void OnDelta(TextDelta&& delta) = 0;
  // All choices have finished.
  virtual void OnEnd(const TokenUsage& total) = 0;
};

}  // namespace portico
