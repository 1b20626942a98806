// What kind of character a code point is, as the reference tokenizer sees it (text/unicode_tables.h says how that
// is known). All functions take any value below 0x110000, are thread-safe and take constant time; the first call
// of a process builds the lookup tables (about 0.2 ms).
#pragma once

#include <cstdint>
#include <vector>

namespace portico {

enum class GeneralCategory : uint8_t {
  kCn,
  kCc,
  kCf,
  kCo,
  kCs,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp
};

// A code point's properties in one word.
class CharProperties {
 public:
  explicit constexpr CharProperties(uint16_t bits) : bits_(bits) {}

  GeneralCategory category() const { return static_cast<GeneralCategory>(bits_ & 0x1F); }
  bool is_letter() const { return InRange(GeneralCategory::kLu, GeneralCategory::kLo); }
  bool is_mark() const { return InRange(GeneralCategory::kMn, GeneralCategory::kMe); }
  bool is_number() const { return InRange(GeneralCategory::kNd, GeneralCategory::kNo); }
  bool is_punctuation_category() const {
    return InRange(GeneralCategory::kPc, GeneralCategory::kPo);
  }
  bool is_symbol() const { return InRange(GeneralCategory::kSm, GeneralCategory::kSo); }

  bool is_word() const { return Flag(0); }         // \w of a Split pattern
  bool is_regex_word() const { return Flag(1); }   // \w of the Whitespace pre-tokenizer
  bool is_space() const { return Flag(2); }        // \s everywhere, White_Space
  bool is_numeric() const { return Flag(3); }      // the Digits pre-tokenizer
  bool is_punctuation() const { return Flag(4); }  // the Punctuation and BERT pre-tokenizers
  bool is_other() const { return Flag(5); }        // what the BERT normalizer cleans away
  bool is_nonspacing() const { return Flag(6); }   // an accent to the BERT normalizer
  bool is_combining() const { return Flag(7); }    // an accent to StripAccents

  uint16_t bits() const { return bits_; }

 private:
  bool InRange(GeneralCategory first, GeneralCategory last) const {
    return category() >= first && category() <= last;
  }
  bool Flag(int i) const { return (bits_ >> (8 + i) & 1) != 0; }

  uint16_t bits_;
};

CharProperties PropertiesOf(uint32_t code_point);

// `count` code points from `first` on, all with these properties.
struct PropertyRun {
  uint32_t first;
  uint32_t count;
  CharProperties properties;
};
// All code points in order, for who makes a table of every one: far faster than to ask for each.
std::vector<PropertyRun> PropertyRuns();

// Appends nothing else: the one character that is the lowercase of `code_point`, or itself. U+0130 is the one
// character whose lowercase is two ("i" and U+0307); here it is itself.
uint32_t ToLowercase(uint32_t code_point);

}  // namespace portico
