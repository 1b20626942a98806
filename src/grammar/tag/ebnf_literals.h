// What has to be known of a user's grammar before the library reads it.
#pragma once

#include <string_view>

namespace portico::grammar {

// Whether a literal of a grammar in GBNF, or in Lark (without "::="), or a class in it has the NUL character, at which the library
// ends a literal; it makes classes of few characters literals too. Ranges of characters and negated classes may have it. Linear.
bool HasNulInLiteral(std::string_view grammar);

}  // namespace portico::grammar
