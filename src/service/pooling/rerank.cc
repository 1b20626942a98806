#include "service/pooling/rerank.h"

#include <algorithm>
#include <cmath>

#include "base/stable_sort.h"

namespace portico {

std::optional<RelevanceLabels> RelevanceLabels::Among(std::span<const std::string> labels) {
  if (labels.size() == 1) return RelevanceLabels{};
  if (labels.size() != 2) return std::nullopt;
  const auto yes = std::find(labels.begin(), labels.end(), "yes");
  const auto no = std::find(labels.begin(), labels.end(), "no");
  if (yes == labels.end() || no == labels.end()) return std::nullopt;
  return RelevanceLabels{static_cast<size_t>(yes - labels.begin()),
                         static_cast<size_t>(no - labels.begin())};
}

float RelevanceLabels::Of(std::span<const float> logits) const {
  return no ? logits[yes] - logits[*no] : logits[yes];
}

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
