// Stop strings in a stream of text, found across the borders of deltas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace portico {

// The text is cut at the first occurrence of a stop string: the one that ends first, and of several
// that end at the same place the one that begins first. Text that may be the start of a stop string
// is held back until that is decided, so the joined output is the same however the text was cut
// into deltas. Empty stop strings are ignored.
class StopMatcher {
 public:
  // `no_stop_trim`: the output keeps the stop string that matched.
  StopMatcher(std::vector<std::string> stops, bool no_stop_trim);

  // Appends to `out` what is certain. True when a stop string has matched: `out` then has all text
  // of the stream, and further calls append nothing and return true.
  bool Push(std::string_view delta, std::string* out);
  // The stream ended without a match: appends the text that was held back.
  void Flush(std::string* out);

  bool has_match() const { return match_ != kNoMatch; }
  // The stop string that matched; "" before that.
  const std::string& matched() const;

 private:
  static constexpr size_t kNoMatch = static_cast<size_t>(-1);

  std::vector<std::string> stops_;
  std::vector<std::vector<size_t>> borders_;  // of each stop string: its Knuth-Morris-Pratt table
  std::vector<size_t> lengths_;               // how much of each stop string the text's end matches
  bool keep_stop_;
  std::string held_;
  size_t match_ = kNoMatch;
};

}  // namespace portico
