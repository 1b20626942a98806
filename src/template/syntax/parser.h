// Tokens to a tree, with Jinja's grammar. Names are not resolved yet (resolver.h).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "template/syntax/lexer.h"
#include "template/syntax/program.h"

namespace portico::jinja {

// Throws Failure. Nesting of the source is bounded, and so is the height of expressions.
class Parser {
 public:
  explicit Parser(Program* program);

  // The whole template.
  StmtList Run();

 private:
  friend class DepthGuard;

  // Tokens
  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& Next();
  bool SkipName(std::string_view name);
  bool SkipOperator(std::string_view op);
  void ExpectOperator(std::string_view op);
  void ExpectBlockEnd();
  std::string_view ExpectAnyName();
  void ExpectName(std::string_view name);
  [[noreturn]] void Unexpected(std::string_view wanted) const;
  std::string Describe(const Token& token) const;

  // Statements (parser_statements.cc)
  using EndTags = std::initializer_list<std::string_view>;
  StmtList Statements(EndTags ends);  // up to the end tag, which stays
  StmtList Body(EndTags ends);        // from the end of the opening tag
  StmtList BodyAndEnd(std::string_view end);
  Stmt* Statement(EndTags ends);  // which end the body that it is in
  std::string Unclosed(EndTags ends) const;
  Stmt* For();
  Stmt* If();
  Stmt* Set();
  Stmt* Macro();
  Stmt* CallBlock();
  Stmt* FilterBlock();
  Stmt* With();
  Stmt* AutoEscape();
  Stmt* Print();
  Stmt* Generation();
  Stmt* Block();
  Stmt* IncludeOrExtends(std::string_view message);
  Stmt* Import(bool from);
  void SkipContextClause();
  void Signature(MacroCode* code);
  Expr* AssignTarget(bool with_namespace, std::string_view end_name = {});
  NameExpr* TargetName();
  void SetUse(Expr* target, NameUse use);

  // Expressions (parser_expressions.cc)
  Expr* Expression(bool with_conditional = true);
  Expr* Conditional();
  Expr* Or();
  Expr* And();
  Expr* Not();
  Expr* Compare();
  Expr* Sum();
  Expr* Concat();
  Expr* Product();
  Expr* Power();
  Expr* Unary(bool with_filter = true);
  Expr* Primary(bool with_namespace = false);
  struct TupleForm {
    bool simplified = false;
    bool with_conditional = true;
    std::string_view end_name = {};
    bool parentheses = false;
    bool with_namespace = false;
  };
  Expr* Tuple(const TupleForm& form);
  Expr* Tuple() { return Tuple(TupleForm{}); }
  Expr* List();
  Expr* Dict();
  Expr* Postfix(Expr* expr);
  Expr* FilterSuffix(Expr* expr);
  Expr* Subscript(Expr* object);
  Expr* SubscriptItem();
  Expr* Call(Expr* callee);
  Expr* Filters(Expr* object, bool inline_start = false);
  Expr* Test(Expr* object);
  Arguments CallArguments();

  // Building
  template <typename T>
  T* Make(ExprKind kind, int line) {
    T* node = arena_->New<T>();
    node->kind = kind;
    node->line = line;
    return node;
  }
  template <typename T>
  T* MakeStmt(StmtKind kind, int line) {
    T* node = arena_->New<T>();
    node->kind = kind;
    node->line = line;
    return node;
  }
  template <typename T>
  std::span<T> Span(const std::vector<T>& items) {
    T* data = arena_->NewArray<T>(items.size());
    std::copy(items.begin(), items.end(), data);
    return {data, items.size()};
  }
  // Sets the height of `node` above its children; bounded.
  template <typename T>
  T* Grow(T* node, std::initializer_list<const Expr*> children) {
    for (const Expr* child : children) Above(node, child);
    return node;
  }
  void Above(Expr* node, const Expr* child);
  void Above(Expr* node, ExprList children);
  void Above(Expr* node, const Arguments& arguments);
  Expr* Constant(Value value, int line);

  Program* program_;
  Arena* arena_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  struct Opened {
    std::string_view name;
    int line;
  };
  std::vector<Opened> open_;  // the statements around what is parsed
};

// Counts nesting while it lives.
class DepthGuard {
 public:
  explicit DepthGuard(Parser* parser);
  ~DepthGuard() { --parser_->depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Parser* parser_;
};

}  // namespace portico::jinja
