// Each kind of pre-tokenizer, made from what its object in the file says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tokenizer/split/pre_tokenizer.h"

namespace portico::tokenizer {

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

PreTokenizerPtr MakeSequence(std::vector<PreTokenizerPtr> parts);
// `invert`: what the pattern matches and what lies between change places.
PreTokenizerPtr MakePatternSplit(SplitPattern pattern, SplitBehavior behavior, bool invert);
PreTokenizerPtr MakeByteLevel(bool add_prefix_space, bool use_regex);
PreTokenizerPtr MakeMetaspace(uint32_t replacement, PreTokenizerStep::Scheme scheme, bool split);
PreTokenizerPtr MakeBert();
PreTokenizerPtr MakeWhitespace();
PreTokenizerPtr MakeWhitespaceSplit();
PreTokenizerPtr MakePunctuation(SplitBehavior behavior);
PreTokenizerPtr MakeDigits(bool individual);
PreTokenizerPtr MakeDelimiterSplit(uint32_t delimiter);
PreTokenizerPtr MakeUnicodeScripts();
// Pieces of `length` code points, at least 1.
PreTokenizerPtr MakeFixedLength(size_t length);

}  // namespace portico::tokenizer
