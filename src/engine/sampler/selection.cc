#include "engine/sampler/selection.h"

#include <algorithm>

#include "engine/sampler/vocab_math.h"

namespace portico {
namespace {

// The order of the filter: more likely first, then the lower id.
struct Before {
  std::span<const float> p;
  bool operator()(TokenId a, TokenId b) const { return p[a] != p[b] ? p[a] > p[b] : a < b; }
};

double MassOf(std::span<const float> p, std::span<const TokenId> tokens) {
  double mass = 0;
  for (const TokenId token : tokens) mass += p[token];
  return mass;
}

// Of `tokens`, in any order: the last one in the filter's order whose predecessors hold at most
// `mass`. A quickselect by mass: the tail of a flat distribution has 100,000 tokens, and sorting
// them takes 10 ms.
TokenId LastWithin(std::span<const float> p, double mass, std::span<TokenId> tokens) {
  const Before before{p};
  TokenId last = *std::min_element(tokens.begin(), tokens.end(), before);
  double above = 0;
  while (tokens.size() > 32) {
    TokenId& middle = tokens[tokens.size() / 2];
    if (before(middle, tokens.front())) std::swap(middle, tokens.front());
    if (before(tokens.back(), tokens.front())) std::swap(tokens.back(), tokens.front());
    if (before(tokens.back(), middle)) std::swap(tokens.back(), middle);
    const TokenId pivot = middle;
    std::swap(middle, tokens.back());
    const auto split = std::partition(tokens.begin(), tokens.end() - 1,
                                      [&](TokenId t) { return before(t, pivot); });
    std::swap(*split, tokens.back());
    const auto greater = static_cast<size_t>(split - tokens.begin());
    const double upper = above + MassOf(p, tokens.first(greater));
    if (upper > mass) {
      tokens = tokens.first(greater);
      continue;
    }
    last = pivot;
    above = upper + p[pivot];
    if (above > mass) return last;
    tokens = tokens.subspan(greater + 1);
  }
  std::sort(tokens.begin(), tokens.end(), before);
  for (const TokenId token : tokens) {
    if (above > mass) break;
    last = token;
    above += p[token];
  }
  return last;
}

}  // namespace

void Select(std::span<const float> p, double total, const SelectionRule& rule,
            std::vector<TokenId>* kept, std::vector<TokenId>* scratch) {
  const size_t most = rule.top_k > 0 ? static_cast<size_t>(rule.top_k) : p.size();
  const double mass = rule.top_p < 1.0f ? rule.top_p * total : total;
  // Few tokens hold nearly all the mass, so look at the likely ones first; wider until the cut is
  // among them.
  for (float cutoff = 1.0f / 64;; cutoff = cutoff > 1e-30f ? cutoff / 64 : 0.0f) {
    cutoff = std::max(cutoff, rule.min_p);
    kept->clear();
    IndicesAtLeast(p, cutoff, kept);
    if (cutoff <= rule.min_p || kept->size() >= most) break;
    if (rule.top_p < 1.0f && MassOf(p, *kept) > mass) break;
  }
  if (kept->size() <= 1) return;

  const Before before{p};
  scratch->assign(kept->begin(), kept->end());
  std::span<TokenId> tokens(*scratch);
  TokenId last = -1;
  if (tokens.size() > most) {
    std::nth_element(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(most) - 1,
                     tokens.end(), before);
    tokens = tokens.first(most);
    last = tokens.back();
  }
  if (rule.top_p < 1.0f) last = LastWithin(p, mass, tokens);
  if (last >= 0) std::erase_if(*kept, [&](TokenId token) { return before(last, token); });
}

void Greatest(std::span<const float> values, size_t n, std::vector<TokenId>* best) {
  best->clear();
  n = std::min(n, values.size());
  if (n == 0) return;
  // A heap of the n best so far, the worst of them in front.
  const Before before{values};
  for (size_t i = 0; i < n; ++i) best->push_back(static_cast<TokenId>(i));
  std::make_heap(best->begin(), best->end(), before);
  for (size_t i = n; i < values.size(); ++i) {
    if (!(values[i] > values[best->front()])) continue;
    std::pop_heap(best->begin(), best->end(), before);
    best->back() = static_cast<TokenId>(i);
    std::push_heap(best->begin(), best->end(), before);
  }
  std::sort_heap(best->begin(), best->end(), before);
}

}  // namespace portico
