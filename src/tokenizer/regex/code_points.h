// A set of code points, as a character class of a pattern names one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace portico::tokenizer {

class CodePoints {
 public:
  struct Range {
    uint32_t begin;
    uint32_t end;  // not in it
  };

  CodePoints() = default;
  // In any order, overlapping or not.
  explicit CodePoints(std::vector<Range> ranges);
  static CodePoints One(uint32_t c) { return CodePoints({{c, c + 1}}); }
  static CodePoints Between(uint32_t first, uint32_t last) {
    return CodePoints({{first, last + 1}});
  }

  bool empty() const { return ranges_.empty(); }
  // In order, with gaps between them.
  const std::vector<Range>& ranges() const { return ranges_; }

  CodePoints Complement() const;
  CodePoints operator|(const CodePoints& other) const;
  CodePoints operator&(const CodePoints& other) const;
  CodePoints operator-(const CodePoints& other) const { return *this & other.Complement(); }

  // The members of a class of PCRE2, without its brackets and without surrogates; nothing for an empty set.
  std::string ToClassMembers() const;

 private:
  std::vector<Range> ranges_;
};

}  // namespace portico::tokenizer
