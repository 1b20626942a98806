#include "service/generation/best_of.h"

#include <algorithm>
#include <utility>

#include "base/stable_sort.h"

namespace portico {

BestOf::BestOf(GenerationPlan* plan, TextSink* sink)
    : sink_(sink),
      n_(plan->options.n),
      best_of_(plan->options.best_of),
      wants_logprobs_(plan->options.logprobs) {
  plan->options.n = best_of_;
  plan->options.logprobs = true;
}

void BestOf::OnDelta(TextDelta&& delta) {
  Candidate& candidate = candidates_[delta.index];
  for (const TextPositionLogprobs& position : delta.logprobs) {
    candidate.logprob_sum += position.chosen.logprob.value_or(0.0f);
    ++candidate.tokens;
  }
  candidate.deltas.push_back(std::move(delta));
}

void BestOf::OnEnd(const TokenUsage& total) {
  const int32_t prompts = static_cast<int32_t>(candidates_.size()) / best_of_;
  for (int32_t p = 0; p < prompts; ++p) {
    std::vector<int32_t> order(static_cast<size_t>(best_of_));
    for (int32_t i = 0; i < best_of_; ++i) order[i] = p * best_of_ + i;
    StableSort(&order, [this](int32_t a, int32_t b) {
      return candidates_[a].score() > candidates_[b].score();
    });
    for (int32_t i = 0; i < n_; ++i) {
      for (TextDelta& delta : candidates_[order[i]].deltas) {
        delta.index = p * n_ + i;
        if (!wants_logprobs_) delta.logprobs.clear();
        sink_->OnDelta(std::move(delta));
      }
    }
  }
  sink_->OnEnd(total);
}

}  // namespace portico
