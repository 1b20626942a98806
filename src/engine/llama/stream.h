// One stream inside the llama engine: what the scheduler needs, the sampler's state, and where its
// deltas go.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/llama/scheduler.h"
#include "engine/sampler/sampler.h"
#include "message/generate.h"

namespace portico::llama {

struct Stream : ScheduledRequest {
  Stream(GenerateRequest request, TokenSink* to, std::span<const TokenId> eos,
         uint64_t fallback_seed);

  // Reads the logits after prompt position `position`: the log-probability of the token that
  // follows it there.
  void TakePromptRow(int32_t position, std::span<const float> logits, SamplerScratch* scratch);

  // Draws the next token from the logits after the last one, into *delta. `tokens` gets it unless
  // the stream has ended with it (delta->finish).
  void TakeLastRow(std::span<const float> logits, SamplerScratch* scratch, TokenDelta* delta);

  // The stream ends without another token.
  void End(FinishReason reason, Status error, TokenDelta* delta);

  TokenSink* sink;

 private:
  void Prepare(TokenDelta* delta);

  bool return_logprobs_;
  int32_t top_logprobs_;
  std::shared_ptr<const std::vector<TokenId>> logprob_ids_;  // never null
  Sampler sampler_;
  std::vector<PositionLogprobs> prompt_logprobs_;  // until the first delta
};

}  // namespace portico::llama
