#include "tokenizer/char_class.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/unicode.h"

namespace portico::tokenizer {
namespace {

constexpr uint32_t kBlock = 64;

uint8_t ClassOf(uint32_t c) {
  CharProperties p = PropertiesOf(c);
  GeneralCategory g = p.category();
  uint8_t out = 0;
  if (p.is_letter()) out |= kLetter;
  if (p.is_number()) out |= kNumber;
  if (p.is_space()) out |= kSpace;
  if (c == '\r' || c == '\n') out |= kNewline;
  if (p.is_mark()) out |= kMark | kUpper | kLower;
  if (g == GeneralCategory::kLm || g == GeneralCategory::kLo) out |= kUpper | kLower;
  if (g == GeneralCategory::kLu || g == GeneralCategory::kLt) out |= kUpper;
  if (g == GeneralCategory::kLl) out |= kLower;
  if (p.is_punctuation_category() || p.is_symbol()) out |= kPunctSymbol;
  return out;
}

// Planes 4 to 13 are unassigned and 15 and 16 are for private use: three quarters of all code points, of no class.
bool IsEmptyPlane(uint32_t c) { return c >= 0x40000 && c >> 16 != 14; }

}  // namespace

const CharClasses& CharClasses::Get() {
  static const CharClasses* const classes = new CharClasses;
  return *classes;
}

CharClasses::CharClasses() {
  std::string blocks;
  std::unordered_map<std::string, uint16_t> known;
  for (uint32_t first = 0; first < 0x110000; first += kBlock) {
    std::string block(kBlock, '\0');
    for (uint32_t i = 0; i < kBlock && !IsEmptyPlane(first); ++i) {
      block[i] = static_cast<char>(ClassOf(first + i));
    }
    auto next = static_cast<uint16_t>(blocks.size() / kBlock);
    auto [it, is_new] = known.emplace(block, next);
    // ASCII keeps the first two blocks, whatever they hold.
    if (is_new || first < 128) {
      blocks += block;
      it->second = next;
    }
    index_[first / kBlock] = it->second;
  }
  blocks_ = new uint8_t[blocks.size()];
  std::memcpy(blocks_, blocks.data(), blocks.size());
}

}  // namespace portico::tokenizer
