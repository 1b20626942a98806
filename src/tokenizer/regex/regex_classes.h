// What the regex syntaxes of tokenizer files call sets of characters, over text/unicode.h's tables.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/regex/code_points.h"
#include "tokenizer/regex/regex.h"

namespace portico::tokenizer {

// A set that has a name, worked out when it is first asked for and kept for the life of the process: there are at most
// some 800, of a few KB. Any thread may ask.
struct NamedCharacters {
  CodePoints members;
  std::string text;  // members.ToClassMembers()
};

// \p{name}: a general category ("L", "Lu", "Uppercase_Letter"), a script ("Han", "Hira"), a block ("In_Hiragana") or
// another property ("Emoji", "Alnum"), in any case, spaces, '_' and '-' left out. Null for an unknown name.
const NamedCharacters* PropertyNamed(std::string_view name);

// [:name:] inside a class: of ASCII for the regex crate. Null for an unknown name.
const NamedCharacters* PosixClassNamed(std::string_view name, Regex::Syntax syntax);

// \s, \d, \w and, in Oniguruma, \h; null for another letter. Inside a class Oniguruma's \w leaves ² ³ ¹ ¼ ½ ¾ out.
const NamedCharacters* LetterClass(char letter, Regex::Syntax syntax, bool in_class);

}  // namespace portico::tokenizer
