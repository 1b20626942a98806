// The order of documents by their relevance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace portico {

struct RankedDocument {
  size_t index = 0;  // in the request
  float score = 0;
};

// Best first; documents of equal scores keep the request's order, and what is not a number comes last. At most
// `top_n` of them. Pure; any thread.
std::vector<RankedDocument> Rank(std::span<const float> scores, std::optional<int32_t> top_n);

}  // namespace portico
