// How relevant documents are, and their order by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace portico {

// Where a classifier's logits tell the relevance of a document: one label alone, or "yes" against "no".
struct RelevanceLabels {
  size_t yes = 0;
  std::optional<size_t> no;

  // Nothing for labels that tell something else.
  static std::optional<RelevanceLabels> Among(std::span<const std::string> labels);

  // The logit of the one label; of two the logarithm of the odds, whose sigmoid is the softmax's "yes".
  float Of(std::span<const float> logits) const;
};

struct RankedDocument {
  size_t index = 0;  // in the request
  float score = 0;
};

// Best first; documents of equal scores keep the request's order, and what is not a number comes last. At most
// `top_n` of them. Pure; any thread.
std::vector<RankedDocument> Rank(std::span<const float> scores, std::optional<int32_t> top_n);

}  // namespace portico
