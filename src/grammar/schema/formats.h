// Values of `format` as patterns.
#pragma once

#include <string_view>

namespace portico::grammar {

// A pattern whose texts all have that format (not always all of them); empty: unknown.
std::string_view FormatPattern(std::string_view format);
// Whether the pattern matches all texts of the format.
bool FormatPatternIsWhole(std::string_view format);

}  // namespace portico::grammar
