// Which tokens may be drawn: SGLang's joint filter (its sampler.py). In descending order of
// probability a token is dropped if top_k others come before it, if those before it already hold
// more than top_p of the whole mass, or if it is less likely than min_p times the best. All three
// look at the same unfiltered distribution. Equal probabilities: the lower id comes first.
#pragma once

#include <span>
#include <vector>

#include "message/sampling.h"

namespace portico {

struct SelectionRule {
  int32_t top_k = -1;  // -1: all
  float top_p = 1.0f;  // (0, 1]
  float min_p = 0.0f;  // [0, 1]
  bool any() const { return top_k > 0 || top_p < 1.0f || min_p > 0.0f; }
};

// `p`: probabilities times a constant such that the greatest is 1; `total`: their sum. Fills `kept`
// with the ids that stay, ascending; never empty. `scratch` keeps its memory between calls.
void Select(std::span<const float> p, double total, const SelectionRule& rule,
            std::vector<TokenId>* kept, std::vector<TokenId>* scratch);

// The n greatest of `values`, best first, in `best`.
void Greatest(std::span<const float> values, size_t n, std::vector<TokenId>* best);

}  // namespace portico
