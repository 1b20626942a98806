#include "tokenizer/decode/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace portico {
namespace {

// border[i]: the longest proper prefix of `word` that ends its first i + 1 bytes.
std::vector<uint32_t> BordersOf(const std::string& word) {
  std::vector<uint32_t> border(word.size(), 0);
  uint32_t length = 0;
  for (size_t i = 1; i < word.size(); ++i) {
    while (length > 0 && word[i] != word[length]) length = border[length - 1];
    if (word[i] == word[length]) ++length;
    border[i] = length;
  }
  return border;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : texts_(std::move(stops)) {
  std::erase_if(texts_, [](const std::string& stop) { return stop.empty(); });
  for (const std::string& stop : texts_) borders_.push_back(BordersOf(stop));
}

StopMatcher::StopMatcher(std::shared_ptr<const StopStrings> stops, bool no_stop_trim)
    : stops_(std::move(stops)), lengths_(stops_->texts().size(), 0), keep_stop_(no_stop_trim) {}

StopMatcher::StopMatcher(std::vector<std::string> stops, bool no_stop_trim)
    : StopMatcher(std::make_shared<const StopStrings>(std::move(stops)), no_stop_trim) {}

bool StopMatcher::Push(const TokenViews& delta, std::string* out) {
  if (has_match()) return true;
  const std::vector<std::string>& stops = stops_->texts();
  if (stops.empty()) {
    out->append(delta.shown);
    return false;
  }
  size_t before = held_.size();
  held_.append(delta.all);
  if (delta.shown != delta.all) {
    apart_.push_back({before, delta.all.size(), std::string(delta.shown)});
  }
  for (size_t at = before; at < held_.size(); ++at) {
    for (size_t i = 0; i < stops.size(); ++i) {
      const std::string& stop = stops[i];
      uint32_t& length = lengths_[i];
      while (length > 0 && held_[at] != stop[length]) length = stops_->Border(i, length);
      if (held_[at] == stop[length]) ++length;
      if (length < stop.size()) continue;
      length = stops_->Border(i, length);
      if (match_ == kNoMatch || stop.size() > stops[match_].size()) match_ = i;
    }
    if (!has_match()) continue;
    size_t end = at + 1;
    Release(keep_stop_ ? end : end - stops[match_].size(), out);
    held_.clear();
    apart_.clear();
    return true;
  }
  size_t longest = *std::max_element(lengths_.begin(), lengths_.end());
  Release(held_.size() - longest, out);
  return false;
}

void StopMatcher::Release(size_t length, std::string* out) {
  if (apart_.empty()) {
    out->append(held_, 0, length);
  } else {
    ReleaseStretches(length, out);
  }
  held_.erase(0, length);
}

void StopMatcher::ReleaseStretches(size_t length, std::string* out) {
  size_t told = 0;  // of held_
  auto stretch = apart_.begin();
  for (; stretch != apart_.end() && stretch->begin + stretch->length <= length; ++stretch) {
    out->append(held_, told, stretch->begin - told).append(stretch->shown);
    told = stretch->begin + stretch->length;
  }
  apart_.erase(apart_.begin(), stretch);
  if (!apart_.empty() && apart_.front().begin < length) {
    Stretch& cut = apart_.front();
    out->append(held_, told, cut.begin - told);
    told = length;
    const size_t rest = cut.begin + cut.length - length;
    size_t shown = cut.shown.size() - std::min(cut.shown.size(), rest);
    while (shown > 0 && shown < cut.shown.size() && IsTailByte(cut.shown[shown])) --shown;
    out->append(cut.shown, 0, shown);
    cut = {length, rest, cut.shown.substr(shown)};
  }
  out->append(held_, told, length - told);
  for (Stretch& later : apart_) later.begin -= length;
}

void StopMatcher::Flush(std::string* out) {
  Release(held_.size(), out);
  std::fill(lengths_.begin(), lengths_.end(), 0);
}

const std::string& StopMatcher::matched() const {
  static const std::string* const none = new std::string;
  return has_match() ? stops_->texts()[match_] : *none;
}

}  // namespace portico
