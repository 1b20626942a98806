// What the regex syntaxes of tokenizer files call sets of characters, over text/unicode.h's tables.
#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/code_points.h"
#include "tokenizer/regex.h"

namespace portico::tokenizer {

// \p{name}: a general category ("L", "Lu", "Uppercase_Letter"), a script ("Han", "Hira"), a block ("In_Hiragana") or
// another property ("Emoji", "Alnum"), in any case, spaces, '_' and '-' left out. Nothing for an unknown name.
std::optional<CodePoints> PropertyNamed(std::string_view name);

// [:name:] inside a class: of ASCII for the regex crate. Nothing for an unknown name.
std::optional<CodePoints> PosixClassNamed(std::string_view name, Regex::Syntax syntax);

// \s, \d, \w and, in Oniguruma, \h; nothing for another letter. Inside a class Oniguruma's \w leaves ² ³ ¹ ¼ ½ ¾ out.
std::optional<CodePoints> LetterClass(char letter, Regex::Syntax syntax, bool in_class);

}  // namespace portico::tokenizer
