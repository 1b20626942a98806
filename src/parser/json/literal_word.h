// Words and numbers of JSON and Python outside of strings.
#pragma once

#include <string>
#include <string_view>

namespace portico::parser {

// Appends what the word means in JSON: a constant, a number, or a string of it. `python`: digits with zeros before them are
// a number. False: it means nothing, and became a string.
bool AppendWord(std::string_view word, bool python, std::string* out);

// Appends what the beginning of a word has in JSON. False: it begins neither a constant nor a number.
bool AppendWordPart(std::string_view word, std::string* out);

}  // namespace portico::parser
