// best_of: generates more choices than are answered and passes on the best n of each prompt, by mean
// log-probability a token (as OpenAI defines it). Whole answers only: nothing can be passed on before the end.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "message/text_delta.h"
#include "service/generation/generation.h"

namespace portico {

class BestOf final : public TextSink {
 public:
  // Changes the plan to `best_of` choices with log-probabilities. `sink` gets n choices a prompt, with log-
  // probabilities only if the plan asked for them; it outlives this.
  BestOf(GenerationPlan* plan, TextSink* sink);

  void OnPrompt(PromptEcho echo) override { sink_->OnPrompt(std::move(echo)); }
  PromptEncoder LongPromptEncoder() override { return sink_->LongPromptEncoder(); }
  void OnDelta(TextDelta&& delta) override;
  void OnEnd(const TokenUsage& total) override;

 private:
  struct Candidate {
    std::vector<TextDelta> deltas;
    double logprob_sum = 0;
    int64_t tokens = 0;
    double score() const { return tokens ? logprob_sum / static_cast<double>(tokens) : 0; }
  };

  TextSink* sink_;
  const int32_t n_;
  const int32_t best_of_;
  const bool wants_logprobs_;
  std::map<int32_t, Candidate> candidates_;  // by index among all
};

}  // namespace portico
