// Characters that a pattern repeats by a count, as `[a-z]{1,300}` and `.{20,}`: automata with a state for each count take seconds to
// compile, and rules that the core repeats by a count are tried with most of a vocabulary at each mask. Here each becomes a rule that has
// any number of these characters, with a budget (RuleSet::AddCounted): one automaton, whose masks are computed once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "grammar/schema/expr.h"
#include "grammar/schema/json_text.h"

namespace portico::grammar {

// What the next characters may be, one set for each; with it the core tells which tokens may reach beyond a piece. A set too many is
// harmless, a character too few is not. An empty set: nothing follows there. Fewer than the sets asked for: nothing more is known.
using CharsAhead = std::vector<CharRanges>;

// Behind the whole of a text, behind the inside of a JSON string that is a value, and behind one that is a name.
CharsAhead NothingAhead();
CharsAhead QuoteAhead();
CharsAhead NameEndAhead();
// Of a text that follows; none: it is empty.
CharsAhead TextAhead(std::string_view utf8);

// `pattern` with its counted pieces as rules of `rules`. It is of characters of JSON strings, or of a plain text, as `chars` says; `ahead`
// follows it.
Expr WithCountedPieces(Expr pattern, CountedChars chars, const CharsAhead& ahead, RuleSet* rules);

// What of `pattern` has at least `least` and at most `most` (-1: no bound) characters. Absent: no expression says it.
std::optional<Expr> WithLength(const Expr& pattern, int64_t least, int64_t most);

}  // namespace portico::grammar
