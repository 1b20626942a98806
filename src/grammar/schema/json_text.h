// How JSON values and the characters of JSON strings are written in a grammar.
//
// A character that JSON does not ask to be escaped stands for itself, the others have one short escape. So no text has two
// spellings, and what is left out of a set of strings cannot come back by another one. Strings without any rule take every
// escape (AnyString).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/schema/expr.h"
#include "text/json.h"

namespace portico::grammar {

// Sorted, merged, without surrogates.
CharRanges Normalized(CharRanges ranges);
// All code points but these, which are normalized, and surrogates.
CharRanges Complement(const CharRanges& ranges);

// One character of a string, out of `ranges` (normalized), as JSON writes it.
Expr JsonChar(const CharRanges& ranges);
// Any one character. Those with a short escape have the long one too.
Expr AnyJsonChar();
// What AnyJsonChar() has and JsonChar(left_out) has not.
Expr JsonCharBut(const CharRanges& left_out);
// The inside of a string that says `utf8`.
std::string JsonStringInside(std::string_view utf8);

// What separates tokens: JSON's white space, or nothing. It is no rule of its own: at the end of one, each mask would have to try
// all tokens that begin with white space.
struct Spacing {
  bool allowed = true;
  Expr operator()() const;
};

// This very value, its members in this order.
Expr JsonValue(const Json& value, const Spacing& space);

}  // namespace portico::grammar
