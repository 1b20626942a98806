// Options by name, and by what may have been meant.
#include <algorithm>
#include <vector>

#include "app/options/nearest_name.h"
#include "app/options/options_table.h"

namespace portico {
namespace {

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

std::vector<std::string_view> SplitAtBars(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t bar = text.find('|');
    parts.push_back(text.substr(0, bar));
    if (bar == std::string_view::npos) return parts;
    text.remove_prefix(bar + 1);
  }
}

std::string_view NearestOption(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& option : ServeOptionTable()) names.push_back(option.name);
  return NearestName(name, names);
}

}  // namespace portico
