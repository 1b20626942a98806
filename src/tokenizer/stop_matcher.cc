#include "tokenizer/stop_matcher.h"

#include <algorithm>

namespace portico {
namespace {

// border[i]: the longest proper prefix of `word` that ends its first i + 1 bytes.
std::vector<size_t> BordersOf(const std::string& word) {
  std::vector<size_t> border(word.size(), 0);
  size_t length = 0;
  for (size_t i = 1; i < word.size(); ++i) {
    while (length > 0 && word[i] != word[length]) length = border[length - 1];
    if (word[i] == word[length]) ++length;
    border[i] = length;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops, bool no_stop_trim)
    : stops_(std::move(stops)), keep_stop_(no_stop_trim) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
  for (const std::string& stop : stops_) borders_.push_back(BordersOf(stop));
  lengths_.assign(stops_.size(), 0);
}

bool StopMatcher::Push(std::string_view delta, std::string* out) {
  if (has_match()) return true;
  if (stops_.empty()) {
    out->append(delta);
    return false;
  }
  size_t before = held_.size();
  held_.append(delta);
  for (size_t at = before; at < held_.size(); ++at) {
    for (size_t i = 0; i < stops_.size(); ++i) {
      const std::string& stop = stops_[i];
      size_t& length = lengths_[i];
      while (length > 0 && held_[at] != stop[length]) length = borders_[i][length - 1];
      if (held_[at] == stop[length]) ++length;
      if (length < stop.size()) continue;
      length = borders_[i][length - 1];
      if (match_ == kNoMatch || stop.size() > stops_[match_].size()) match_ = i;
    }
    if (!has_match()) continue;
    size_t end = at + 1;
    out->append(held_, 0, keep_stop_ ? end : end - stops_[match_].size());
    held_.clear();
    return true;
  }
  size_t longest = *std::max_element(lengths_.begin(), lengths_.end());
  out->append(held_, 0, held_.size() - longest);
  held_.erase(0, held_.size() - longest);
  return false;
}

void StopMatcher::Flush(std::string* out) {
  out->append(held_);
  held_.clear();
  std::fill(lengths_.begin(), lengths_.end(), 0);
}

const std::string& StopMatcher::matched() const {
  static const std::string* const none = new std::string;
  return has_match() ? stops_[match_] : *none;
}

}  // namespace portico
