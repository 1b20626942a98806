// Stop strings in a stream of text, found across the borders of deltas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/decode/token_views.h"

namespace portico {

// Stop strings and what is looked up to find them. Immutable: all choices of a request share one.
class StopStrings {
 public:
  // Empty ones are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  const std::vector<std::string>& texts() const { return texts_; }
  // How much of text i still matches, when the longest match that ends here is `length` bytes long.
  uint32_t Border(size_t i, uint32_t length) const { return borders_[i][length - 1]; }

  // Of so many stop strings' bytes: of this object, about.
  static constexpr int64_t kBytesForEach = 1 + sizeof(uint32_t);

 private:
  std::vector<std::string> texts_;
  std::vector<std::vector<uint32_t>> borders_;  // of each: its Knuth-Morris-Pratt table
};

// The text is cut at the first occurrence of a stop string: the one that ends first, and of several
// that end at the same place the one that begins first. Text that may be the start of a stop string
// is held back until that is decided, so the joined output is the same however the text was cut
// into deltas. Empty stop strings are ignored.
//
// Stop strings are looked for in the text with all special tokens; what is cut and sent is the text that is shown. Where a
// token's views differ, the ends of both belong together.
class StopMatcher {
 public:
  // `no_stop_trim`: the output keeps the stop string that matched.
  StopMatcher(std::shared_ptr<const StopStrings> stops, bool no_stop_trim);
  StopMatcher(std::vector<std::string> stops, bool no_stop_trim);

  // Appends to `out` what is certain. True when a stop string has matched: `out` then has all text
  // of the stream, and further calls append nothing and return true.
  bool Push(const TokenViews& delta, std::string* out);
  // A delta that is shown as it is.
  bool Push(std::string_view delta, std::string* out) {
    return Push(TokenViews{delta, delta}, out);
  }
  // The stream ended without a match: appends the text that was held back.
  void Flush(std::string* out);

  bool has_match() const { return match_ != kNoMatch; }
  // The stop string that matched; "" before that.
  const std::string& matched() const;

 private:
  static constexpr size_t kNoMatch = static_cast<size_t>(-1);

  // A stretch of held_ that is shown otherwise.
  struct Stretch {
    size_t begin;
    size_t length;
    std::string shown;
  };

  // What is shown of the first `length` bytes of held_ goes to `out`.
  void Release(size_t length, std::string* out);
  void ReleaseStretches(size_t length, std::string* out);

  std::shared_ptr<const StopStrings> stops_;
  std::vector<uint32_t> lengths_;  // how much of each stop string the text's end matches
  bool keep_stop_;
  std::string held_;            // of the text with all special tokens
  std::vector<Stretch> apart_;  // in their order
  size_t match_ = kNoMatch;
};

}  // namespace portico
