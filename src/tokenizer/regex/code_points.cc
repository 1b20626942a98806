#include "tokenizer/regex/code_points.h"

#include <algorithm>

namespace portico::tokenizer {
namespace {

constexpr uint32_t kEnd = 0x110000;

void AppendHex(uint32_t c, std::string* out) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  out->append("\\x{");
  for (int shift = 20; shift >= 0; shift -= 4) out->push_back(kDigits[c >> shift & 15]);
  out->push_back('}');
}

}  // namespace

CodePoints::CodePoints(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (const Range& range : ranges) {
    if (range.begin >= range.end) continue;
    if (!ranges_.empty() && range.begin <= ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    } else {
      ranges_.push_back(range);
    }
  }
}

CodePoints CodePoints::Complement() const {
  CodePoints out;
  uint32_t at = 0;
  for (const Range& range : ranges_) {
    if (range.begin > at) out.ranges_.push_back({at, range.begin});
    at = range.end;
  }
  if (at < kEnd) out.ranges_.push_back({at, kEnd});
  return out;
}

CodePoints CodePoints::operator|(const CodePoints& other) const {
  std::vector<Range> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePoints(std::move(both));
}

CodePoints CodePoints::operator&(const CodePoints& other) const {
  return (Complement() | other.Complement()).Complement();
}

std::string CodePoints::ToClassMembers() const {
  static const CodePoints* const kSurrogates = new CodePoints(Between(0xD800, 0xDFFF));
  std::string out;
  for (const Range& range : (*this - *kSurrogates).ranges_) {
    AppendHex(range.begin, &out);
    if (range.end - range.begin > 1) {
      out.push_back('-');
      AppendHex(range.end - 1, &out);
    }
  }
  return out;
}

}  // namespace portico::tokenizer
