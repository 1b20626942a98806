// The rule by which spaces at the ends of tokens are left out of their offsets.
#pragma once

#include <cstddef>
#include <string_view>

#include "tokenizer/encoding.h"

namespace portico::tokenizer {

// Characters at a token's two ends that are spaces; each is all of one that has no others.
struct OuterSpaces {
  size_t leading = 0;
  size_t trailing = 0;
};

// Of a token as the vocabulary spells it, where "Ġ" is a space too.
OuterSpaces OuterSpacesOf(std::string_view token);

// As in the reference each is a unit of the span, be it in characters or in bytes.
void TrimSpan(OuterSpaces spaces, Span* span);

}  // namespace portico::tokenizer
