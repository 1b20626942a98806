#include "grammar/tag/ebnf_literals.h"

#include <algorithm>

namespace portico::grammar {
namespace {

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

// Whether the escape that begins with the backslash of `escape` is NUL: \0, \x and zeros, \u0000, \U00000000.
bool IsNulEscape(std::string_view escape) {
  if (escape.size() < 2 || escape[0] != '\\') return false;
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

// The position behind a class of characters, which begins at `at`. `*nul`: it is not negated and names NUL other than as the first
// of a range.
size_t BehindClass(std::string_view text, size_t at, bool* nul) {
  const bool negated = text.substr(at).starts_with("[^");
  size_t i = at + (negated ? 2 : 1);
  while (i < text.size() && text[i] != ']') {
    const bool is_nul = IsNulEscape(text.substr(i));
    if (text[i] != '\\') {
      ++i;
      continue;
    }
    const char kind = i + 1 < text.size() ? text[i + 1] : '0';
    i += 2;
    if (!is_nul) continue;
    const size_t digits = kind == '0' ? 0 : kind == 'u' ? 4 : kind == 'U' ? 8 : text.size();
    const size_t end = std::min(text.find_first_not_of('0', i), text.size());
    i = std::min(end, i + std::min(digits, text.size()));
    const std::string_view rest = text.substr(i);
    const bool range = rest.size() > 1 && rest[0] == '-' && rest[1] != ']';
    *nul = *nul || (!negated && (!range || IsNulEscape(rest.substr(1))));
  }
  return std::min(i + 1, text.size());
}

// The position behind a regular expression between slashes.
size_t BehindExpression(std::string_view text, size_t at, bool* nul) {
  size_t i = at + 1;
  while (i < text.size() && text[i] != '/') {
    if (text[i] == '[') {
      i = BehindClass(text, i, nul);
    } else if (text[i] == '\\') {
      *nul = *nul || IsNulEscape(text.substr(i));
      i += 2;
    } else {
      ++i;
    }
  }
  return std::min(i + 1, text.size());
}

}  // namespace

bool HasNulInLiteral(std::string_view grammar) {
  const bool is_lark = grammar.find("::=") == std::string_view::npos;
  bool in_literal = false;
  bool nul = false;
  for (size_t i = 0; i < grammar.size() && !nul;) {
    const char c = grammar[i];
    if (in_literal) {
      if (c == '\\' && IsNulEscape(grammar.substr(i))) return true;
      in_literal = c != '"' && !IsLineEnd(c);
      i += c == '\\' ? 2 : 1;
    } else if (c == '#' || (is_lark && grammar.substr(i).starts_with("//"))) {
      while (i < grammar.size() && !IsLineEnd(grammar[i])) ++i;
    } else if (is_lark && c == '/') {
      i = BehindExpression(grammar, i, &nul);
    } else if (!is_lark && c == '[') {
      i = BehindClass(grammar, i, &nul);
    } else {
      in_literal = c == '"';
      ++i;
    }
  }
  return nul;
}

}  // namespace portico::grammar
