// The split patterns as scanners: Next(p, end) is where the piece that begins at `p` ends. A scanner may begin at the
// beginning of any piece; what it says there depends on the text from there on alone.
#pragma once

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/scanner_inline.h"

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
      return use(Gpt2Scanner{});
    case Kind::kCl100k:
      return use(Cl100kScanner<3>{});
    case Kind::kQwen2:
      return use(Cl100kScanner<1>{});
    case Kind::kO200k:
      return use(O200kScanner{});
    case Kind::kDeepSeekV3:
      return use(DeepSeekScanner{});
    default:
      return use(WholeScanner{});
  }
}

}  // namespace portico::tokenizer
