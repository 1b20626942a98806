// What PCRE2 10.42 does not know of case: characters that are several without it (ß is ss), and those newer than its
// Unicode.
#pragma once

#include <cstdint>
#include <string>

#include "tokenizer/regex/code_points.h"

namespace portico::tokenizer {

// `set` and the other case of those of its members that PCRE2 takes for characters without case.
CodePoints WithNewerCase(const CodePoints& set);
bool HasNewerCase(uint32_t character);

// What those of `set` are, as alternatives of a pattern in the order of the characters: "ss|ʼn|…" (the full folds of
// Unicode's CaseFolding.txt). Nothing if there are none.
std::string FoldsOfSeveral(const CodePoints& set);

}  // namespace portico::tokenizer
