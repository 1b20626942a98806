#include "template/syntax/parser.h"

#include "template/run/failure.h"

namespace portico::jinja {
namespace {

constexpr int kMaxDepth = 200;

}  // namespace

DepthGuard::DepthGuard(Parser* parser) : parser_(parser) {
  if (parser->depth_ >= kMaxDepth) {
    SyntaxError(parser->Current().line, "the template is nested too deeply");
  }
  ++parser->depth_;
}

Parser::Parser(Program* program)
    : program_(program),
      arena_(&program->arena),
      tokens_(Tokenize(program->source, &program->arena)) {}

StmtList Parser::Run() { return Statements({}); }

const Token& Parser::Next() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::SkipName(std::string_view name) {
  if (!Current().IsName(name)) return false;
  Next();
  return true;
}

bool Parser::SkipOperator(std::string_view op) {
  if (!Current().IsOperator(op)) return false;
  Next();
  return true;
}

void Parser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) Unexpected(op);
}

void Parser::ExpectBlockEnd() {
  if (Current().type != TokenType::kBlockEnd) Unexpected("end of statement block");
  Next();
}

std::string_view Parser::ExpectAnyName() {
  if (Current().type != TokenType::kName) Unexpected("name");
  return Next().text;
}

void Parser::ExpectName(std::string_view name) {
  if (!SkipName(name)) Unexpected(name);
}

std::string Parser::Describe(const Token& token) const {
  switch (token.type) {
    case TokenType::kData:
      return "template data";
    case TokenType::kVariableBegin:
      return "begin of print statement";
    case TokenType::kVariableEnd:
      return "end of print statement";
    case TokenType::kBlockBegin:
      return "begin of statement block";
    case TokenType::kBlockEnd:
      return "end of statement block";
    case TokenType::kString:
      return "string";
    case TokenType::kNumber:
      return token.IsInteger() ? "integer" : "float";
    case TokenType::kEnd:
      return "end of template";
    case TokenType::kName:
    case TokenType::kOperator:
      break;
  }
  return std::string(token.text);
}

void Parser::Unexpected(std::string_view wanted) const {
  if (Current().type == TokenType::kEnd) {
    SyntaxError(Current().line, "unexpected end of template, expected '", wanted, "'.");
  }
  SyntaxError(Current().line, "expected token '", wanted, "', got '", Describe(Current()), "'");
}

}  // namespace portico::jinja
