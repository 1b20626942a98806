// Tokens of a template, with Jinja's rules for whitespace around tags (trim_blocks, lstrip_blocks, - and +).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "template/value/arena.h"
#include "template/value/value.h"

namespace portico::jinja {

enum class TokenType : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kNumber,    // value
  kOperator,  // text
  kEnd,
};

struct Token {
  TokenType type;
  int line;
  std::string_view text;  // data, name, operator or unescaped string
  Value number;

  bool IsOperator(std::string_view op) const { return type == TokenType::kOperator && text == op; }
  bool IsName(std::string_view name) const { return type == TokenType::kName && text == name; }
  bool IsInteger() const { return type == TokenType::kNumber && !number.is(Kind::kFloat); }
};

// Newlines as Jinja reads them: \r\n and \r become \n, and one newline at the end goes.
std::string NormalizeSource(std::string_view source);

// `source` is normalized and outlives the tokens, as does the arena. Throws Failure.
std::vector<Token> Tokenize(std::string_view source, Arena* arena);

}  // namespace portico::jinja
