#include "grammar/tag/ebnf_literals.h"

#include <algorithm>

namespace portico::grammar {
namespace {

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

// The position behind what begins at `at` and lasts to an unescaped `last`.
size_t Behind(std::string_view text, size_t at, char last) {
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == last) {
      return i + 1;
    }
  }
  return text.size();
}

// Whether the escape that begins with the backslash of `escape` is NUL: \0, \x and zeros, \u0000, \U00000000.
bool IsNulEscape(std::string_view escape) {
  if (escape.size() < 2) return false;
  const char kind = escape[1];
  if (kind == '0') return true;
  std::string_view digits = escape.substr(2);
  if (kind == 'u') digits = digits.substr(0, 4);
  if (kind == 'U') digits = digits.substr(0, 8);
  if (kind != 'x' && kind != 'u' && kind != 'U') return false;
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  if (kind != 'x') return zeros == (kind == 'u' ? 4 : 8);
  const bool ends =
      zeros == digits.size() ||
      std::string_view("0123456789abcdefABCDEF").find(digits[zeros]) == std::string_view::npos;
  return zeros > 0 && ends;
}

}  // namespace

bool HasNulInLiteral(std::string_view grammar) {
  const bool is_lark = grammar.find("::=") == std::string_view::npos;
  bool in_literal = false;
  for (size_t i = 0; i < grammar.size();) {
    const char c = grammar[i];
    if (in_literal) {
      if (c == '\\' && IsNulEscape(grammar.substr(i))) return true;
      in_literal = c != '"' && !IsLineEnd(c);
      i += c == '\\' ? 2 : 1;
    } else if (c == '#' || (is_lark && grammar.substr(i).starts_with("//"))) {
      while (i < grammar.size() && !IsLineEnd(grammar[i])) ++i;
    } else if (is_lark && c == '/') {
      i = Behind(grammar, i, '/');
    } else if (!is_lark && c == '[') {
      i = Behind(grammar, i, ']');
    } else {
      in_literal = c == '"';
      ++i;
    }
  }
  return false;
}

}  // namespace portico::grammar
