// The parts of a pattern that name characters: escapes and [classes], in the syntaxes of tokenizer files.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/code_points.h"
#include "tokenizer/regex.h"
#include "tokenizer/regex_classes.h"

namespace portico::tokenizer {

struct CharacterClass {
  CodePoints members;
  bool negated = false;  // not yet taken into account, as ignoring case comes first
};

struct CharacterProperty {
  const NamedCharacters* characters = nullptr;
  bool negated = false;
};

// "the pattern '…'", its beginning where it is long: for messages.
std::string PatternText(std::string_view pattern);
// "the pattern '…' uses `what`, which is not supported"
Status RefusePattern(std::string_view pattern, std::string_view what);

// Each reads at `*at` of the pattern and moves it behind what it read.

// At the '[' of a class, which may hold other classes and && between its parts.
StatusOr<CharacterClass> ParseClass(std::string_view pattern, Regex::Syntax syntax, size_t* at);
// At the backslash of \p{…} or \P{…}.
StatusOr<CharacterProperty> ParseProperty(std::string_view pattern, Regex::Syntax syntax,
                                          size_t* at);
// At the backslash of an escape that means one character: \n, \x41, \x{1F600}, \u00E9, \012, \cA, \.
StatusOr<uint32_t> ParseCharacter(std::string_view pattern, Regex::Syntax syntax, bool in_class,
                                  size_t* at);

}  // namespace portico::tokenizer
