// How long a search with a pattern may take: what is known of a piece of it, put together from the pieces that it has.
//
// Python's re tries one way after the other. Where the next character always tells which way goes on (the pattern is
// deterministic, as in LL(1)), a search from one place takes as many steps as there are characters. A repeat of what
// is not deterministic may take exponentially many. Repeats one behind the other that can share text, `a*a*b`, take a
// power of that, which is counted here as the degree. Pure.
#pragma once

#include <bitset>

namespace portico::sglang {

// ASCII characters; behind them white space, digits, other word characters and the rest of the others.
using CharacterSet = std::bitset<132>;

struct RegexShape {
  CharacterSet first;   // what a text may begin with that it matches
  CharacterSet follow;  // what may go on where a match could end; with `nullable` also `first`
  CharacterSet all;     // what may be in a text that it matches
  bool nullable = true;
  bool deterministic = true;
  double ways = 1;  // to match, without repeats that have no end

  // Repeats without an end.
  CharacterSet loops;    // what is in them
  CharacterSet open;     // of those that a match may end with
  CharacterSet pending;  // of those that what stands behind them does not end
  int degree = 0;        // so many of them in a row can share text
};

// What matches one character.
RegexShape OneOf(const CharacterSet& characters);
// Adds what stands behind it.
void Append(const RegexShape& next, RegexShape* shape);
// Adds an alternative; `alternatives` begins as the first of them.
void AddAlternative(const RegexShape& next, RegexShape* alternatives);
// `several`: more than once is possible; then the shape must be deterministic, and not match the empty text.
// `choices`: of numbers of times; 0: no end.
void Repeat(bool optional, bool several, int choices, RegexShape* shape);
// It may stand behind itself and stay deterministic.
bool RepeatsClearly(const RegexShape& shape);

}  // namespace portico::sglang
