#include "app/options/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace portico {
namespace {

constexpr size_t kMaxNameToCompare = 64;

// Insertions, deletions and replacements from one to the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view NearestName(std::string_view name, std::span<const std::string_view> names) {
  std::string dashed(name.substr(0, kMaxNameToCompare));
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  std::string_view nearest;
  size_t best = std::max<size_t>(dashed.size() / 3, 2) + 1;
  for (const std::string_view one : names) {
    const size_t distance = EditDistance(dashed, one);
    if (distance < best) {
      best = distance;
      nearest = one;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> names,
                       std::string_view before, std::string_view behind) {
  const std::string_view nearest = NearestName(name, names);
  if (nearest.empty()) return {};
  return fmt::format("; did you mean {}{}{}?", before, nearest, behind);
}

}  // namespace portico
