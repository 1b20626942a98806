// The split patterns as scanners: Next(p, end) is where the piece that begins at `p` ends. A scanner may begin at the
// beginning of any piece; what it says there depends on the text from there on alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tokenizer/split/ascii_block.h"
#include "tokenizer/split/pre_tokenizer.h"
#include "tokenizer/split/scanner_inline.h"

namespace portico::tokenizer {

struct Gpt2Scanner {
  const CharClasses& classes = CharClasses::Get();
  const char* Next(const char* p, const char* end) { return scan::Gpt2(classes, p, end); }
};

template <int kDigits>
struct Cl100kScanner {
  const CharClasses& classes = CharClasses::Get();
  const char* Next(const char* p, const char* end) {
    return scan::Cl100k<kDigits>(classes, p, end);
  }
};

struct O200kScanner {
  const CharClasses& classes = CharClasses::Get();
  const char* Next(const char* p, const char* end) { return scan::O200k(classes, p, end); }
};

// DeepSeek V3's three patterns: numbers and runs of CJK are cut out first, then words inside of each part. What none
// of them matches is a piece.
class DeepSeekScanner {
 public:
  const char* Next(const char* p, const char* end) {
    if (p >= part_end_) part_end_ = PartEnd(p, end);
    const char* q = scan::DeepSeekWord(classes_, p, part_end_);
    if (q != p) return q;
    do q += ClassAt(classes_, q).length;
    while (q < part_end_ && scan::DeepSeekWord(classes_, q, part_end_) == q);
    return q;
  }

 private:
  const char* PartEnd(const char* p, const char* end) const {
    const char* q = CutEnd(p, end);
    if (q != p) return q;
    while ((q = scan::SkipToDigitOrWide(q, end)) < end && CutEnd(q, end) == q) {
      q += ClassAt(classes_, q).length;
    }
    return q;
  }
  // Where a number or a run of CJK that begins at `p` ends; `p` if there is none.
  const char* CutEnd(const char* p, const char* end) const {
    ClassedChar c = ClassAt(classes_, p);
    if ((c.char_class & kNumber) != 0) return scan::Numbers<3>(classes_, p, end);
    if (c.length != 3) return p;
    while (p < end && scan::IsDeepSeekCjk(p)) p += 3;
    return p;
  }

  const CharClasses& classes_ = CharClasses::Get();
  const char* part_end_ = nullptr;
};

#if defined(PORTICO_HAS_ASCII_BLOCK)

// A scanner for text of any kind that takes ASCII a block at a time; `Scanner` does the rest.
template <scan::SplitRules kRules, typename Scanner>
class BlockScanner {
 public:
  [[gnu::always_inline]] const char* Next(const char* p, const char* end) {
    if (p != at_) starts_ = 0;  // the caller has gone on by itself
    if (starts_ == 0 && !Look(p, end)) return at_ = scanner_.Next(p, end);
    at_ = block_ + std::countr_zero(starts_);
    starts_ &= starts_ - 1;
    return at_;
  }

 private:
  // Of text that blocks do not help with, so much is left to the scanner.
  static constexpr unsigned kLeftBytes = 48;

  bool Look(const char* p, const char* end) {
    if (p < left_until_ || static_cast<size_t>(end - p) < scan::kBlockBytes) return false;
    if (!scan::IsAscii(p[0]) || !scan::IsAscii(p[1]))
      return false;  // as most words of other scripts
    const scan::BlockStarts found = scan::StartsOf<kRules>(p);
    block_ = p;
    starts_ = found.starts;
    if (starts_ == 0) {
      left_until_ = p + std::max(found.known, kLeftBytes);
      return false;
    }
    if (found.known < scan::kBlockBytes) left_until_ = p + found.known + 1;
    return true;
  }

  Scanner scanner_;
  const char* at_ = nullptr;     // where the last piece ended
  const char* block_ = nullptr;  // its first byte
  uint64_t starts_ = 0;          // of the block, those behind at_
  const char* left_until_ = nullptr;
};

#else

template <auto, typename Scanner>
using BlockScanner = Scanner;

#endif

// No pattern: the text is one piece.
struct WholeScanner {
  const char* Next(const char*, const char* end) { return end; }
};

// Calls `use` with the scanner of that kind of plan.
template <typename Use>
auto WithScanner(ByteLevelPlan::Kind kind, Use use) {
  using Kind = ByteLevelPlan::Kind;
  switch (kind) {
    case Kind::kGpt2:
      return use(BlockScanner<scan::kGpt2Rules, Gpt2Scanner>{});
    case Kind::kCl100k:
      return use(BlockScanner<scan::kCl100kRules<3>, Cl100kScanner<3>>{});
    case Kind::kQwen2:
      return use(BlockScanner<scan::kCl100kRules<1>, Cl100kScanner<1>>{});
    case Kind::kO200k:
      return use(BlockScanner<scan::kO200kRules, O200kScanner>{});
    case Kind::kDeepSeekV3:
      return use(BlockScanner<scan::kDeepSeekRules, DeepSeekScanner>{});
    default:
      return use(WholeScanner{});
  }
}

}  // namespace portico::tokenizer
