#include "api/gateway/merge_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace portico::api {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

std::string_view NameAt(std::string_view text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), IsNameCharacter);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

// Histograms and summaries name their samples after the metric.
bool IsOf(std::string_view sample, std::string_view family) {
  if (!sample.starts_with(family)) return false;
  const std::string_view rest = sample.substr(family.size());
  return rest.empty() || rest == "_bucket" || rest == "_sum" || rest == "_count" ||
         rest == "_total" || rest == "_created";
}

}  // namespace

MergedMetrics::Family& MergedMetrics::Of(std::string_view name) {
  const auto [at, added] = families_.try_emplace(std::string(name));
  if (added) names_.emplace_back(name);
  return at->second;
}

void MergedMetrics::Add(std::string_view worker, std::string_view text) {
  std::string_view family;  // that the lines below are of
  bool describe = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      const std::string_view name = NameAt(line.substr(7));
      if (name.empty()) continue;
      if (name != family) {
        family = name;
        describe = Of(family).head.empty();
      }
      if (describe) Of(family).head.append(line).append("\n");
      continue;
    }
    const std::string_view name = NameAt(line);
    if (name.empty() || name.size() == line.size()) continue;
    if (family.empty() || !IsOf(name, family)) family = name;
    std::string_view rest = line.substr(name.size());
    auto to = std::back_inserter(Of(family).samples);
    if (rest.starts_with('{')) {
      rest.remove_prefix(1);
      fmt::format_to(to, "{}{{worker=\"{}\"{}{}\n", name, worker, rest.starts_with('}') ? "" : ",",
                     rest);
    } else if (rest.starts_with(' ')) {
      fmt::format_to(to, "{}{{worker=\"{}\"}}{}\n", name, worker, rest);
    }
  }
}

std::string MergedMetrics::Text() const {
  std::string text;
  for (const std::string& name : names_) {
    const Family& family = families_.at(name);
    if (!family.samples.empty()) text.append(family.head).append(family.samples);
  }
  return text;
}

}  // namespace portico::api
