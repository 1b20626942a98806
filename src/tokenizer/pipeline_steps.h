// What a normalizer or pre-tokenizer does, as data: for whoever wants to do the same in one go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace portico::tokenizer {

class Charsmap;

struct NormalizerStep {
  enum class Kind { kOther, kPrepend, kReplace, kPrecompiled, kBert };
  Kind kind = Kind::kOther;
  std::string from;                    // kReplace: the literal that is replaced
  std::string to;                      // kReplace, kPrepend
  const Charsmap* charsmap = nullptr;  // kPrecompiled; lives as long as the normalizer
  // kBert
  bool clean = false;
  bool chinese = false;
  bool accents = false;
  bool lowercase = false;
};

struct PreTokenizerStep {
  enum class Kind { kOther, kSplitLiteral, kMetaspace, kWhitespaceSplit, kBert };
  enum class Scheme { kFirst, kNever, kAlways };
  Kind kind = Kind::kOther;
  std::string
      literal;  // kSplitLiteral: pieces end or begin at it; without it the text is one piece
  uint32_t replacement = 0;  // kMetaspace
  Scheme scheme = Scheme::kAlways;
  bool split = true;
};

}  // namespace portico::tokenizer
