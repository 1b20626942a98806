// Expressions as the core's regular expressions. The core makes one automaton of each, whose masks are computed when the grammar is
// compiled. Where rules refer to rules, it tries the tokens that may reach from one into the next at every mask: for ([a-z]{1,9} )*
// those are half of a vocabulary, and take milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "grammar/schema/expr.h"

namespace portico::grammar {

// A group that is repeated is one automaton up to so many states. Each takes some milliseconds to compile.
inline constexpr int64_t kGroupStates = 64;
// A pattern that may begin anywhere is one up to so many: else what a matcher holds grows with the square of the text, as the pattern
// begins anew at each character.
inline constexpr int64_t kSearchStates = 256;

struct Automaton {
  std::string regex;   // printable ASCII, in parentheses or a single item
  int64_t states = 0;  // about as many
  bool nullable = false;
};

// Absent: it refers to rules, or has more than `most_states`.
std::optional<Automaton> AutomatonOf(const Expr& expr, int64_t most_states);

// Of a repetition that is one automaton with all its counts: of kGroupStates, or of twice as many where its part is small. Else absent.
std::optional<Automaton> WholeRepeat(const Expr& repeat);

// *, +, ?, {m,} or {m,n}.
std::string Quantifier(int64_t min, int64_t max);

}  // namespace portico::grammar
