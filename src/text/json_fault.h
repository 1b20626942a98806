#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace portico {

// Where `text`, which a JSON parser has refused, stops being JSON by RFC 8259's grammar: the number of the first wrong
// byte, or its size if it ends too early. npos if the grammar has nothing against it (a number may be too large, or the
// text nested too deeply). Linear time; memory of a bit for each open bracket.
size_t JsonFaultOffset(std::string_view text);

// "line 2, column 7", both from 1; a column is a character. Empty for npos.
std::string TextPlace(std::string_view text, size_t offset);

}  // namespace portico
