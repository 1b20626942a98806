#include "service/rerank.h"

#include <cmath>

#include "base/stable_sort.h"

namespace portico {

std::vector<RankedDocument> Rank(std::span<const float> scores, std::optional<int32_t> top_n) {
  std::vector<RankedDocument> ranked;
  ranked.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) ranked.push_back({i, scores[i]});
  StableSort(&ranked, [](const RankedDocument& a, const RankedDocument& b) {
    if (std::isnan(a.score)) return false;
    return std::isnan(b.score) || a.score > b.score;
  });
  if (top_n && static_cast<size_t>(*top_n) < ranked.size()) {
    ranked.resize(static_cast<size_t>(*top_n));
  }
  return ranked;
}

}  // namespace portico
