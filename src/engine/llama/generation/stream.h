// One stream inside the llama engine: what the scheduler needs, the sampler's state, and where its
// deltas go.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/llama/generation/scheduler.h"
#include "engine/sampler/sampler.h"
#include "message/generate.h"

namespace portico::llama {

struct Stream : ScheduledRequest {
  // `original_logprobs`: those of the answer's tokens are taken before the temperature.
  Stream(GenerateRequest request, TokenSink* to, std::span<const TokenId> eos,
         uint64_t fallback_seed, bool original_logprobs);

  // Reads the logits after prompt position `position`: the log-probability of the token that
  // follows it there.
  void TakePromptRow(int32_t position, std::span<const float> logits, SamplerScratch* scratch);

  // Draws the next token from the logits after the last one, into *delta. `tokens` gets it unless
  // the stream has ended with it (delta->finish).
  void TakeLastRow(std::span<const float> logits, SamplerScratch* scratch, TokenDelta* delta);

  // The stream ends without another token.
  void End(FinishReason reason, Status error, TokenDelta* delta);

  // Fills the mask for the next token, on any one thread.
  void PrepareMask();
  bool is_constrained() const { return constraint_.has_value(); }

  TokenSink* sink;

 private:
  void Prepare(TokenDelta* delta);
  // False: the grammar does not allow the token.
  bool Accept(TokenId token);
  // The client's grammar ends the answer.
  Status AtFault(std::string_view why) const;
  // A grammar whose masks take so long that every stream would wait for this one.
  bool GrammarIsTooSlow() const;

  bool return_logprobs_;
  int32_t top_logprobs_;
  std::shared_ptr<const std::vector<TokenId>> logprob_ids_;  // never null
  bool original_logprobs_;
  Sampler sampler_;
  std::optional<ConstraintState>
      constraint_;                           // its state stays over a retraction, as the tokens do
  std::string grammar_field_;                // the request's that it came in
  std::chrono::nanoseconds grammar_time_{};  // of the processor, for applying it
  std::vector<PositionLogprobs> prompt_logprobs_;  // until the first delta
};

}  // namespace portico::llama
