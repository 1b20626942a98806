// How often a part of a pattern repeats: "*", "+?", "{2,3}" …
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "tokenizer/regex/regex_cursor.h"

namespace portico::tokenizer {

struct Quantifier {
  enum class Taking { kMost, kLeast, kMostAndKeep };  // greedy, lazy, possessive
  static constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();

  uint32_t least = 0;
  uint32_t most = kNoLimit;
  Taking taking = Taking::kMost;

  // In PCRE2's syntax.
  std::string ToText() const;
};

// Reads the quantifier at the cursor. Nothing where there is none: a brace that begins no interval is itself.
std::optional<Quantifier> ReadQuantifier(PatternCursor* in);

// Of (?:X inner)outer; without an outer one, of X inner.
struct NestedQuantifiers {
  Quantifier inner;
  std::optional<Quantifier> outer;
};

// The same matches in the same order with one quantifier where one is enough: (?:X*)+ is X*. Oniguruma reads patterns
// so, and then answers in time where each of exponentially many ways to divide the X would be tried.
NestedQuantifiers Simplified(const Quantifier& inner, const Quantifier& outer);

}  // namespace portico::tokenizer
