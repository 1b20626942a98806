// Patterns that may begin or end anywhere in a string: X{m,n} without anchors is any characters, m times X, and any characters. As
// written, it begins anew at each character: what a matcher holds then grows with the square of the text, and each mask tries most of
// a vocabulary. Here a pattern whose only repetition is at such an end becomes one that begins where the characters of X begin, and
// ends where they do: of these places there is one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "grammar/schema/expr.h"

namespace portico::grammar {

// `parts`, which follow one another, with those next to each other that repeat the same character as one.
std::vector<Expr> WithRunsJoined(std::vector<Expr> parts);

// `parts` with any characters before them, unless they match from the start, and behind them, unless they match to the end. There, more
// repetitions than the least match nothing more.
std::vector<Expr> WithOpenEnds(std::vector<Expr> parts, bool from_start, bool to_end);

// The same texts as `sequence`, in such a form. Absent: there is none.
std::optional<Expr> WithEndsOfRuns(const Expr& sequence);

// The same texts as `searched`, with as much of its beginning and of its end as one automaton each as kSearchStates allow: what these
// take needs no try behind a piece in the middle.
Expr WithEndsAsAutomata(const Expr& searched);

// So many characters a pattern may have that is none of these and may begin anywhere: as many beginnings are open at a time, and each
// is a state of the matcher.
inline constexpr int64_t kMostSearchedChars = 128;
bool CanBeSearched(const Expr& pattern);

}  // namespace portico::grammar
