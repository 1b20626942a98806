// Compiled grammars as bytes, from a compiling process to the server.
//
// The library's own SerializeJSON() writes the automaton of the whole grammar again for each of its rules, and what is read from
// that has as many copies: 32 tools made 43 MB and took 2.4 s. Here it is written once, and masks are
// written as binary numbers.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/mask/space_bound.h"

namespace portico::grammar {

struct UnpackedGrammar {
  xgrammar::CompiledGrammar grammar;
  size_t bytes = 0;  // that it takes, without the vocabulary
  SpaceRule space = SpaceRule::kFree;
};

// Both throw what the library throws.
std::string PackGrammar(const xgrammar::CompiledGrammar& grammar,
                        SpaceRule space = SpaceRule::kFree);
// Absent: the bytes are none of PackGrammar()'s for this vocabulary.
std::optional<UnpackedGrammar> UnpackGrammar(std::string_view packed,
                                             const xgrammar::TokenizerInfo& tokens);

}  // namespace portico::grammar
