// Searches in a chat template's source.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace portico::parser {

// Whether `text` has a place where the pattern fits. In a pattern '~' is any white space or none, '_' is white space,
// `^` stands for '_' itself; all else is itself.
size_t FindPattern(std::string_view text, std::string_view pattern, size_t from, size_t* end);
bool HasPattern(std::string_view text, std::initializer_list<std::string> patterns);
// A place of `first`, and `second` somewhere behind its end.
bool HasSequence(std::string_view text, std::string_view first,
                 std::initializer_list<std::string> second);
// `{% … parameter | default(value) … %}` in live code: neither in a comment, nor in a string, nor in raw text.
bool HasDefaultFilter(std::string_view text, std::string_view parameter, bool value);

}  // namespace portico::parser
