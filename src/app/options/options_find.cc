// Options by name, and by what may have been meant.
#include <algorithm>
#include <vector>

#include "app/options/options_table.h"

namespace portico {
namespace {

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

std::string Dashed(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

}  // namespace

const Option* FindOption(std::string_view name) {
  const std::string dashed = Dashed(name);
  for (const Option& option : ServeOptionTable()) {
    if (option.name == dashed || (!option.alias.empty() && option.alias == dashed)) return &option;
  }
  return nullptr;
}

std::string_view NearestOption(std::string_view name) {
  const std::string dashed = Dashed(name.substr(0, 64));
  std::string_view nearest;
  size_t best = std::max<size_t>(dashed.size() / 3, 2) + 1;
  for (const Option& option : ServeOptionTable()) {
    const size_t distance = EditDistance(dashed, option.name);
    if (distance < best) {
      best = distance;
      nearest = option.name;
    }
  }
  return nearest;
}

}  // namespace portico
