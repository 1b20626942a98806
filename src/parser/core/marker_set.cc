#include "parser/core/marker_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace portico::parser {

std::vector<std::string> JoinMarkers(std::vector<std::string> a,
                                     const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

MarkerSet::MarkerSet(std::vector<std::string> markers, bool suffixed)
    : markers_(std::move(markers)), suffixed_(suffixed) {
  for (const std::string& marker : markers_) {
    if (marker.empty()) continue;
    first_[static_cast<unsigned char>(marker[0])] = true;
    longest_ = std::max(longest_, marker.size() + (suffixed ? 1 + kMaxSuffix : 0));
  }
}

MarkerSet::Match MarkerSet::AtSuffixed(std::string_view text, size_t marker) const {
  std::string_view tag = markers_[marker];
  if (!tag.starts_with('<') || !tag.ends_with('>')) return {};
  tag.remove_suffix(1);
  if (!text.starts_with(tag)) return {};
  size_t at = tag.size();
  if (at == text.size()) return {Kind::kPartial, 0, kNone, 0};
  if (text[at] != ':') return {};
  const size_t begin = ++at;
  while (at < text.size() && at - begin < kMaxSuffix &&
         (absl::ascii_isalnum(static_cast<unsigned char>(text[at])) ||
          std::string_view("_.-").find(text[at]) != std::string_view::npos)) {
    ++at;
  }
  if (at == text.size()) return {Kind::kPartial, 0, kNone, 0};
  if (at == begin || text[at] != '>') return {};
  return {Kind::kFound, 0, marker, at + 1};
}

MarkerSet::Match MarkerSet::At(std::string_view text, bool final) const {
  Match match;
  for (size_t i = 0; i < markers_.size(); ++i) {
    const std::string& marker = markers_[i];
    if (marker.empty()) continue;
    if (text.size() >= marker.size()) {
      if (marker.size() > match.length && text.starts_with(marker)) {
        match = {Kind::kFound, 0, i, marker.size()};
      }
    }
    if (suffixed_ && match.kind != Kind::kFound) {
      const Match suffixed = AtSuffixed(text, i);
      if (suffixed.kind == Kind::kFound) return suffixed;
      if (suffixed.kind == Kind::kPartial && !final) match = suffixed;
    }
  }
  if (match.kind == Kind::kPartial) return match;
  if (final || text.size() >= longest_) return match;
  // One that is longer than what was found may still be on its way.
  for (const std::string& marker : markers_) {
    if (marker.size() > text.size() && std::string_view(marker).starts_with(text)) {
      return {Kind::kPartial, 0, kNone, 0};
    }
  }
  return match;
}

MarkerSet::Match MarkerSet::Find(std::string_view text, bool final, size_t from) const {
  for (size_t i = from; i < text.size(); ++i) {
    if (!first_[static_cast<unsigned char>(text[i])]) continue;
    Match match = At(text.substr(i), final);
    if (match.kind == Kind::kAbsent) continue;
    match.begin = i;
    return match;
  }
  return {Kind::kAbsent, text.size(), kNone, 0};
}

}  // namespace portico::parser
