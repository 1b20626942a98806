// A few fixed texts to look for in a stream.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace portico::parser {

// `a`, then `b`.
std::vector<std::string> JoinMarkers(std::vector<std::string> a, const std::vector<std::string>& b);

// Immutable. Searches cost one table look-up a byte where no marker begins.
class MarkerSet {
 public:
  static constexpr size_t kMaxSuffix = 32;
  static constexpr size_t kNone = static_cast<size_t>(-1);

  enum class Kind {
    kAbsent,   // no marker begins here, whatever follows
    kPartial,  // more text is needed to say
    kFound,
  };
  struct Match {
    Kind kind = Kind::kAbsent;
    size_t begin = 0;       // of what was found or may begin; the text's length if kAbsent
    size_t marker = kNone;  // the longest that fits
    size_t length = 0;
  };

  MarkerSet() = default;
  // Empty markers are left out, but keep their number. `suffixed`: a tag also stands with a suffix of at most
  // kMaxSuffix letters, digits and "_.-" behind a colon: `<think:6124c78e>` is `<think>`.
  explicit MarkerSet(std::vector<std::string> markers, bool suffixed = false);

  bool empty() const { return longest_ == 0; }
  const std::string& text(size_t marker) const { return markers_[marker]; }
  // At the start of `text`. `final`: nothing follows, so kPartial is never the answer.
  Match At(std::string_view text, bool final) const;
  // The first place where a marker stands or may begin, from `from` on.
  Match Find(std::string_view text, bool final, size_t from = 0) const;

 private:
  // The marker with a suffix, at the start of `text`.
  Match AtSuffixed(std::string_view text, size_t marker) const;

  std::vector<std::string> markers_;
  bool suffixed_ = false;
  std::array<bool, 256> first_{};
  size_t longest_ = 0;
};

}  // namespace portico::parser
