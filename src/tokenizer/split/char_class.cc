#include "tokenizer/split/char_class.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "text/unicode.h"

namespace portico::tokenizer {
namespace {

constexpr uint32_t kBlock = 64;

uint8_t ClassOf(CharProperties p) {
  GeneralCategory g = p.category();
  uint8_t out = 0;
  if (p.is_letter()) out |= kLetter;
  if (p.is_number()) out |= kNumber;
  if (p.is_space()) out |= kSpace;
  if (p.is_mark()) out |= kMark | kUpper | kLower;
  if (g == GeneralCategory::kLm || g == GeneralCategory::kLo) out |= kUpper | kLower;
  if (g == GeneralCategory::kLu || g == GeneralCategory::kLt) out |= kUpper;
  if (g == GeneralCategory::kLl) out |= kLower;
  if (p.is_punctuation_category() || p.is_symbol()) out |= kPunctSymbol;
  return out;
}

}  // namespace

const CharClasses& CharClasses::Get() {
  static const CharClasses* const classes = new CharClasses;
  return *classes;
}

CharClasses::CharClasses() {
  std::string blocks;
  std::unordered_map<std::string, uint16_t> known;
  auto intern = [&](uint32_t number, const std::string& block) {
    auto next = static_cast<uint16_t>(blocks.size() / kBlock);
    auto [it, is_new] = known.emplace(block, next);
    // ASCII keeps the first two blocks, whatever they hold.
    if (is_new || number < 128 / kBlock) {
      blocks += block;
      it->second = next;
    }
    index_[number] = it->second;
  };
  std::string block;
  for (const PropertyRun& run : PropertyRuns()) {
    auto value = static_cast<char>(ClassOf(run.properties));
    uint32_t end = run.first + run.count;
    for (uint32_t c = run.first; c < end;) {
      uint32_t count = std::min(end - c, kBlock - c % kBlock);
      block.append(count, value);
      c += count;
      if (c % kBlock != 0) continue;
      uint32_t number = c / kBlock - 1;
      for (char line : {'\r', '\n'}) {
        if (number == 0) block[static_cast<size_t>(line)] |= kNewline;
      }
      intern(number, block);
      block.clear();
      // A long run is the same block again and again.
      for (bool same = count == kBlock; same && end - c >= kBlock; c += kBlock) {
        index_[c / kBlock] = index_[number];
      }
    }
  }
  blocks_ = new uint8_t[blocks.size()];
  std::memcpy(blocks_, blocks.data(), blocks.size());
}

}  // namespace portico::tokenizer
