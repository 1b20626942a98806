// The parts of a pattern that name characters: escapes and [classes], in the syntaxes of tokenizer files.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "tokenizer/regex/code_points.h"
#include "tokenizer/regex/regex_classes.h"
#include "tokenizer/regex/regex_cursor.h"

namespace portico::tokenizer {

struct CharacterClass {
  CodePoints members;
  bool negated = false;  // not yet taken into account, as ignoring case comes first
};

struct CharacterProperty {
  const NamedCharacters* characters = nullptr;
  bool negated = false;
};

// Each reads at the cursor and moves it behind what it read.

// At the '[' of a class, which may hold other classes and && between its parts.
StatusOr<CharacterClass> ParseClass(PatternCursor* in);
// At the backslash of \p{…} or \P{…}.
StatusOr<CharacterProperty> ParseProperty(PatternCursor* in);
// At the backslash of an escape that means one character: \n, \x41, \x{1F600}, \u00E9, \012, \cA, \.
StatusOr<uint32_t> ParseCharacter(PatternCursor* in, bool in_class);

}  // namespace portico::tokenizer
