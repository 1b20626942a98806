// Regular expressions, in ECMA-262's syntax: of JSON Schema (`pattern`) as grammars of the inside of a JSON string, and those that
// a whole answer has to match.
//
// Groups, choices, classes, quantifiers, \d \D \w \W \s \S (as ECMA-262 has them, ASCII but for \s), \t \n \r \f \v \0 \cX
// \xHH \uHHHH \u{…}, `^` in front and `$` at the end of the whole pattern or of one of its choices. A `pattern` without an anchor
// may stand anywhere in the string, as the standard says. The core reads regular expressions too, but skips anchors and escapes that
// it does not know.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "grammar/schema/counted_piece.h"
#include "grammar/schema/expr.h"

namespace portico::grammar {

// UNIMPLEMENTED: the pattern needs what no grammar can say (look-around, back references, \b), or this one does not.
// INVALID_ARGUMENT: it is malformed or too big. Neither names a field.
StatusOr<Expr> PatternInside(std::string_view pattern);

// EBNF of the texts that match from their first character to their last, without NUL. The text is UTF-8. `ahead` follows them.
// INVALID_ARGUMENT without a field: it is malformed, too big, matches nothing, or needs what no grammar can say.
StatusOr<std::string> RegexToEbnf(std::string_view regex, const CharsAhead& ahead = NothingAhead());

}  // namespace portico::grammar
