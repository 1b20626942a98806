// Character classes of the regex syntaxes that tokenizer files use, over text/unicode.h's tables: names to predicates,
// predicates to the members of a PCRE2 class.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace portico::tokenizer {

using CharacterTest = std::function<bool(uint32_t)>;

// \p{name}: "L", "Lu", "Letter", "Han" …, in any case, spaces, '_' and '-' left out. Null for a name that is unknown here.
CharacterTest PropertyTest(std::string_view name);

// [:name:] inside a class. Null for a name that is unknown here.
CharacterTest PosixTest(std::string_view name);

bool IsSpaceCharacter(uint32_t c);

// \w of Oniguruma, which takes ² ³ ¹ ¼ ½ ¾ for word characters, but not inside a class.
bool IsWord(uint32_t c);
bool IsWordInClass(uint32_t c);

// \w of the regex crate.
bool IsRegexWord(uint32_t c);

// The members of a character class, without its brackets: every code point (no surrogates) for which `test` is true.
std::string RangesOf(const CharacterTest& test);

}  // namespace portico::tokenizer
