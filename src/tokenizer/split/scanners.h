// The split patterns of the known model families, written out by hand: no regex engine on the path
// of a request. Each equals its pattern under leftmost, alternation-ordered, backtracking matching;
// scanners_test.cc holds them against the regex engine.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/normalize/normalized_string.h"

namespace portico::tokenizer {

enum class KnownPattern {
  kNone,
  kGpt2,          // GPT-2 and the ByteLevel pre-tokenizer
  kCl100k,        // GPT-4, Llama 3: numbers by three
  kQwen2,         // the same, numbers one by one
  kO200k,         // GPT-4o, gpt-oss: words split at case changes
  kNumbers3,      // \p{N}{1,3}
  kDeepSeekCjk,   // runs of CJK ideographs and kana
  kDeepSeekWord,  // the third pattern of DeepSeek V3
};

// `fancy`: the pattern is written for tiktoken's engine, else for Oniguruma.
KnownPattern RecognizePattern(std::string_view pattern, bool fancy);

// Covers non-empty, valid UTF-8 with matches of the pattern and the parts between them.
void ScanMatches(KnownPattern pattern, std::string_view text, std::vector<Match>* out);

}  // namespace portico::tokenizer
