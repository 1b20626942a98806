// What a request may take in memory at most, known before work on it begins (docs/architecture.md, "General rules").
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "engine/engine.h"
#include "message/text_request.h"

namespace portico {

// Of --max-request-cost-bytes.
inline constexpr int64_t kDefaultRequestCost = int64_t{1} << 30;

// Adds up and compares. Figures are estimates from above of what is kept for the request at once, from its tokens,
// choices and log-probabilities; they need not be exact, but grow with each of them.
class RequestCost {
 public:
  explicit RequestCost(int64_t bound) : bound_(bound) {}

  // `count` things of `bytes` bytes each, both >= 0. INVALID_ARGUMENT naming `field` with both numbers where the sum is
  // above the bound.
  Status Add(std::string_view field, int64_t count, int64_t bytes);

  int64_t bytes() const { return sum_; }

 private:
  int64_t bound_;
  int64_t sum_ = 0;
};

// Each choice: its decoder, its stream in the engine, the answer's frame.
inline constexpr int64_t kChoiceCost = 2048;
// Each token of an answer: its text, its id, a delta on its way.
inline constexpr int64_t kAnswerTokenCost = 16;
// Each log-probability, spelled.
inline constexpr int64_t kLogprobCost = 96;
// Its text in an answer.
inline constexpr int64_t kLogprobTextCost = 32;

// Each text that gets a vector or a row of logits.
inline constexpr int64_t kTextCost = 512;
// Each number of it: a float, and its digits in the answer.
inline constexpr int64_t kPooledValueCost = 20;

// A prompt that has not been tokenized.
int64_t PromptCost(const CompletionRequest::Prompt& prompt);

// The answers to a prompt of that cost: its choices, their tokens and all log-probabilities that are asked for, beside
// the prompt itself. Each choice's answer has the prompt's log-probabilities, and repeats the prompt where it is echoed.
struct AnswerCost {
  int64_t prompt_bytes = 0;
  int64_t choices = 1;
  int64_t max_tokens = 0;  // of each answer; bounded by the context
  bool streams = false;    // the answer is not kept
  // Values a position: the token, the alternatives, those by id; 0: none.
  int64_t logprobs = 0;
  bool prompt_logprobs = false;
  bool echoes = false;  // each answer has the prompt's text or its ids
  std::string_view logprobs_field =
      "top_logprobs";  // the client's name for what asks for most of them
};
Status AddAnswer(const AnswerCost& answer, const EngineInfo& engine, std::string_view prompt_field,
                 RequestCost* cost);
// Of so many prompts of that cost.
Status CheckAnswers(const AnswerCost& answer, const EngineInfo& engine,
                    std::string_view prompt_field, size_t prompts, int64_t bound);
// Of requests with options.
AnswerCost AnswerCostOf(const GenerationOptions& options, const EngineInfo& engine);

}  // namespace portico
