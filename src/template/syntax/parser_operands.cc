// Operands: literals, tuples, subscripts, calls, filters and tests.
#include <algorithm>

#include "template/builtin/filters.h"
#include "template/builtin/tests.h"
#include "template/run/failure.h"
#include "template/syntax/parser.h"

namespace portico::jinja {

Expr* Parser::Primary(bool with_namespace) {
  const Token& token = Current();
  switch (token.type) {
    case TokenType::kName: {
      Next();
      std::string_view text = token.text;
      if (text == "true" || text == "True") return Constant(Value::Bool(true), token.line);
      if (text == "false" || text == "False") return Constant(Value::Bool(false), token.line);
      if (text == "none" || text == "None") return Constant(Value::None(), token.line);
      if (static_cast<unsigned char>(text[0] - '0') < 10) {
        SyntaxError(token.line, "Invalid character in identifier");
      }
      auto* name = Make<NameExpr>(ExprKind::kName, token.line);
      name->name = text;
      if (!with_namespace || !SkipOperator(".")) return name;
      auto* ref = Make<NamespaceRefExpr>(ExprKind::kNamespaceRef, token.line);
      ref->name = name;
      ref->attribute = ExpectAnyName();
      return ref;
    }
    case TokenType::kString: {
      Next();
      if (Current().type != TokenType::kString) {
        return Constant(Value::String(token.text), token.line);
      }
      std::string joined(token.text);
      while (Current().type == TokenType::kString) joined += Next().text;
      return Constant(Value::String(arena_->Copy(joined)), token.line);
    }
    case TokenType::kNumber:
      Next();
      return Constant(token.number, token.line);
    default:
      break;
  }
  if (token.IsOperator("(")) {
    Next();
    DepthGuard guard(this);
    Expr* expr = Tuple({.parentheses = true});
    ExpectOperator(")");
    return expr;
  }
  if (token.IsOperator("[")) return List();
  if (token.IsOperator("{")) return Dict();
  SyntaxError(token.line, "unexpected '", Describe(token), "'");
}

Expr* Parser::Tuple(const TupleForm& form) {
  DepthGuard guard(this);
  int line = Current().line;
  std::vector<Expr*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) ExpectOperator(",");
    const Token& token = Current();
    if (token.type == TokenType::kVariableEnd || token.type == TokenType::kBlockEnd ||
        token.IsOperator(")") || (!form.end_name.empty() && token.IsName(form.end_name))) {
      break;
    }
    items.push_back(form.simplified ? Primary(form.with_namespace)
                                    : Expression(form.with_conditional));
    if (!Current().IsOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!form.parentheses) {
      SyntaxError(line, "Expected an expression, got '", Describe(Current()), "'");
    }
  }
  auto* node = Make<ListExpr>(ExprKind::kTuple, line);
  node->items = Span(items);
  Above(node, node->items);
  return node;
}

Expr* Parser::List() {
  auto* node = Make<ListExpr>(ExprKind::kList, Next().line);
  std::vector<Expr*> items;
  while (!Current().IsOperator("]")) {
    if (!items.empty()) ExpectOperator(",");
    if (Current().IsOperator("]")) break;
    items.push_back(Expression());
  }
  ExpectOperator("]");
  node->items = Span(items);
  Above(node, node->items);
  return node;
}

Expr* Parser::Dict() {
  auto* node = Make<DictExpr>(ExprKind::kDict, Next().line);
  std::vector<Expr*> keys, values;
  while (!Current().IsOperator("}")) {
    if (!keys.empty()) ExpectOperator(",");
    if (Current().IsOperator("}")) break;
    keys.push_back(Expression());
    ExpectOperator(":");
    values.push_back(Expression());
  }
  ExpectOperator("}");
  node->keys = Span(keys);
  node->values = Span(values);
  Above(node, node->keys);
  Above(node, node->values);
  return node;
}

Expr* Parser::Postfix(Expr* expr) {
  while (true) {
    if (Current().IsOperator(".") || Current().IsOperator("[")) {
      expr = Subscript(expr);
    } else if (Current().IsOperator("(")) {
      expr = Call(expr);
    } else {
      return expr;
    }
  }
}

Expr* Parser::FilterSuffix(Expr* expr) {
  while (true) {
    if (Current().IsOperator("|")) {
      expr = Filters(expr);
    } else if (Current().IsName("is")) {
      expr = Test(expr);
    } else if (Current().IsOperator("(")) {
      expr = Call(expr);
    } else {
      return expr;
    }
  }
}

Expr* Parser::Subscript(Expr* object) {
  const Token& token = Next();
  if (token.text == ".") {
    const Token& attribute = Next();
    if (attribute.type == TokenType::kName) {
      auto* node = Make<GetAttrExpr>(ExprKind::kGetAttr, token.line);
      node->object = object;
      node->name = attribute.text;
      node->member = FindMember(attribute.text);
      return Grow(node, {object});
    }
    if (!attribute.IsInteger()) SyntaxError(attribute.line, "expected name or number");
    auto* node = Make<GetItemExpr>(ExprKind::kGetItem, token.line);
    node->object = object;
    node->index = Constant(attribute.number, attribute.line);
    return Grow(node, {object});
  }
  std::vector<Expr*> items;
  while (!Current().IsOperator("]")) {
    if (!items.empty()) ExpectOperator(",");
    items.push_back(SubscriptItem());
  }
  ExpectOperator("]");
  auto* node = Make<GetItemExpr>(ExprKind::kGetItem, token.line);
  node->object = object;
  if (items.size() == 1) {
    node->index = items[0];
  } else {
    auto* tuple = Make<ListExpr>(ExprKind::kTuple, token.line);
    tuple->items = Span(items);
    Above(tuple, tuple->items);
    node->index = tuple;
  }
  if (node->index->kind == ExprKind::kConst) {
    Value index = static_cast<ConstExpr*>(node->index)->value;
    if (index.is_string()) {
      node->is_name = true;
      node->name = index.str();
      node->member = FindMember(node->name);
    }
  }
  return Grow(node, {object, node->index});
}

Expr* Parser::SubscriptItem() {
  int line = Current().line;
  Expr* start = nullptr;
  if (!Current().IsOperator(":")) {
    start = Expression();
    if (!Current().IsOperator(":")) return start;
  }
  ExpectOperator(":");
  auto ends = [&] { return Current().IsOperator("]") || Current().IsOperator(","); };
  auto* node = Make<SliceExpr>(ExprKind::kSlice, line);
  node->start = start;
  if (!Current().IsOperator(":") && !ends()) node->stop = Expression();
  if (SkipOperator(":") && !ends()) node->step = Expression();
  return Grow(node, {node->start, node->stop, node->step});
}

Expr* Parser::Call(Expr* callee) {
  auto* node = Make<CallExpr>(ExprKind::kCall, Current().line);
  node->callee = callee;
  node->arguments = CallArguments();
  Above(node, node->arguments);
  return Grow(node, {callee});
}

Arguments Parser::CallArguments() {
  int line = Current().line;
  ExpectOperator("(");
  Arguments arguments;
  std::vector<Expr*> positional;
  std::vector<KeywordArgument> keywords;
  auto ensure = [&](bool ok) {
    if (!ok) SyntaxError(line, "invalid syntax for function call expression");
  };
  for (bool first = true; !Current().IsOperator(")"); first = false) {
    if (!first) {
      ExpectOperator(",");
      if (Current().IsOperator(")")) break;
    }
    if (SkipOperator("*")) {
      ensure(arguments.star == nullptr && arguments.double_star == nullptr);
      arguments.star = Expression();
    } else if (SkipOperator("**")) {
      ensure(arguments.double_star == nullptr);
      arguments.double_star = Expression();
    } else if (Current().type == TokenType::kName && Ahead().IsOperator("=")) {
      ensure(arguments.double_star == nullptr);
      std::string_view name = Next().text;
      Next();
      for (const KeywordArgument& other : keywords) {
        if (other.name == name) SyntaxError(line, "keyword argument repeated: ", name);
      }
      keywords.push_back({name, Expression()});
    } else {
      ensure(arguments.star == nullptr && arguments.double_star == nullptr && keywords.empty());
      positional.push_back(Expression());
    }
  }
  ExpectOperator(")");
  arguments.positional = Span(positional);
  arguments.keywords = Span(keywords);
  return arguments;
}

Expr* Parser::Filters(Expr* object, bool inline_start) {
  while (Current().IsOperator("|") || inline_start) {
    if (!inline_start) Next();
    inline_start = false;
    auto* node = Make<FilterExpr>(ExprKind::kFilter, Current().line);
    std::string name(ExpectAnyName());
    while (SkipOperator(".")) (name += '.') += ExpectAnyName();
    node->name = arena_->Copy(name);
    node->function = FindFilter(name);
    node->object = object;
    if (Current().IsOperator("(")) node->arguments = CallArguments();
    Above(node, node->arguments);
    object = Grow(node, {object});
  }
  return object;
}

Expr* Parser::Test(Expr* object) {
  int line = Next().line;
  const bool negated = SkipName("not");
  auto* node = Make<TestExpr>(ExprKind::kTest, line);
  std::string name(ExpectAnyName());
  while (SkipOperator(".")) (name += '.') += ExpectAnyName();
  node->name = arena_->Copy(name);
  node->function = FindTest(name);
  node->object = object;
  const Token& token = Current();
  if (token.IsOperator("(")) {
    node->arguments = CallArguments();
  } else if ((token.type == TokenType::kName || token.type == TokenType::kString ||
              token.type == TokenType::kNumber || token.IsOperator("[") || token.IsOperator("{")) &&
             !token.IsName("else") && !token.IsName("or") && !token.IsName("and")) {
    if (token.IsName("is")) SyntaxError(line, "You cannot chain multiple tests with is");
    DepthGuard guard(this);
    node->arguments.positional = Span(std::vector<Expr*>{Postfix(Primary())});
  }
  Above(node, node->arguments);
  Grow(node, {object});
  if (!negated) return node;
  auto* inverse = Make<UnaryExpr>(ExprKind::kNot, line);
  inverse->operand = node;
  return Grow(inverse, {node});
}

}  // namespace portico::jinja
