// Operators, from the loosest to the tightest.
#include <algorithm>

#include "template/run/failure.h"
#include "template/syntax/parser.h"

namespace portico::jinja {
namespace {

constexpr uint16_t kMaxHeight = 250;

struct BinaryForm {
  std::string_view text;
  BinaryOp op;
};
constexpr BinaryForm kProducts[] = {{"*", BinaryOp::kMultiply},
                                    {"/", BinaryOp::kDivide},
                                    {"//", BinaryOp::kFloorDivide},
                                    {"%", BinaryOp::kModulo}};

struct CompareForm {
  std::string_view text;
  CompareOp op;
};
constexpr CompareForm kCompares[] = {{"==", CompareOp::kEq}, {"!=", CompareOp::kNe},
                                     {"<", CompareOp::kLt},  {"<=", CompareOp::kLe},
                                     {">", CompareOp::kGt},  {">=", CompareOp::kGe}};

}  // namespace

void Parser::Above(Expr* node, const Expr* child) {
  if (child == nullptr || child->height < node->height) return;
  if (child->height >= kMaxHeight) SyntaxError(node->line, "the expression is nested too deeply");
  node->height = static_cast<uint16_t>(child->height + 1);
}

void Parser::Above(Expr* node, ExprList children) {
  for (const Expr* child : children) Above(node, child);
}

void Parser::Above(Expr* node, const Arguments& arguments) {
  Above(node, arguments.positional);
  for (const KeywordArgument& keyword : arguments.keywords) Above(node, keyword.value);
  Above(node, arguments.star);
  Above(node, arguments.double_star);
}

Expr* Parser::Constant(Value value, int line) {
  auto* node = Make<ConstExpr>(ExprKind::kConst, line);
  node->value = value;
  return node;
}

Expr* Parser::Expression(bool with_conditional) {
  DepthGuard guard(this);
  return with_conditional ? Conditional() : Or();
}

Expr* Parser::Conditional() {
  Expr* expr = Or();
  while (Current().IsName("if")) {
    auto* node = Make<ConditionalExpr>(ExprKind::kConditional, Next().line);
    node->yes = expr;
    node->test = Or();
    if (SkipName("else")) {
      DepthGuard guard(this);
      node->no = Conditional();
    }
    expr = Grow(node, {node->yes, node->test, node->no});
  }
  return expr;
}

Expr* Parser::Or() {
  Expr* first = And();
  if (!Current().IsName("or")) return first;
  std::vector<Expr*> items = {first};
  while (SkipName("or")) items.push_back(And());
  auto* node = Make<ListExpr>(ExprKind::kOr, first->line);
  node->items = Span(items);
  Above(node, node->items);
  return node;
}

Expr* Parser::And() {
  Expr* first = Not();
  if (!Current().IsName("and")) return first;
  std::vector<Expr*> items = {first};
  while (SkipName("and")) items.push_back(Not());
  auto* node = Make<ListExpr>(ExprKind::kAnd, first->line);
  node->items = Span(items);
  Above(node, node->items);
  return node;
}

Expr* Parser::Not() {
  if (!Current().IsName("not")) return Compare();
  DepthGuard guard(this);
  auto* node = Make<UnaryExpr>(ExprKind::kNot, Next().line);
  node->operand = Not();
  return Grow(node, {node->operand});
}

Expr* Parser::Compare() {
  Expr* first = Sum();
  std::vector<CompareOp> ops;
  std::vector<Expr*> operands;
  while (true) {
    const Token& token = Current();
    auto form = std::find_if(std::begin(kCompares), std::end(kCompares),
                             [&](const CompareForm& f) { return token.IsOperator(f.text); });
    if (form != std::end(kCompares)) {
      ops.push_back(form->op);
    } else if (token.IsName("in")) {
      ops.push_back(CompareOp::kIn);
    } else if (token.IsName("not") && Ahead().IsName("in")) {
      Next();
      ops.push_back(CompareOp::kNotIn);
    } else {
      break;
    }
    Next();
    operands.push_back(Sum());
  }
  if (ops.empty()) return first;
  auto* node = Make<CompareExpr>(ExprKind::kCompare, first->line);
  node->first = first;
  node->ops = Span(ops);
  node->operands = Span(operands);
  Above(node, node->operands);
  return Grow(node, {first});
}

Expr* Parser::Sum() {
  Expr* left = Concat();
  while (true) {
    if (Current().IsOperator("+")) {
      std::vector<Expr*> items = {left};
      while (SkipOperator("+")) items.push_back(Concat());
      auto* node = Make<ListExpr>(ExprKind::kAdd, left->line);
      node->items = Span(items);
      Above(node, node->items);
      left = node;
    } else if (Current().IsOperator("-")) {
      auto* node = Make<BinaryExpr>(ExprKind::kBinary, Next().line);
      node->op = BinaryOp::kSubtract;
      node->left = left;
      node->right = Concat();
      left = Grow(node, {node->left, node->right});
    } else {
      return left;
    }
  }
}

Expr* Parser::Concat() {
  Expr* first = Product();
  if (!Current().IsOperator("~")) return first;
  std::vector<Expr*> items = {first};
  while (SkipOperator("~")) items.push_back(Product());
  auto* node = Make<ListExpr>(ExprKind::kConcat, first->line);
  node->items = Span(items);
  Above(node, node->items);
  return node;
}

Expr* Parser::Product() {
  Expr* left = Power();
  while (true) {
    auto form = std::find_if(std::begin(kProducts), std::end(kProducts),
                             [&](const BinaryForm& f) { return Current().IsOperator(f.text); });
    if (form == std::end(kProducts)) return left;
    auto* node = Make<BinaryExpr>(ExprKind::kBinary, Next().line);
    node->op = form->op;
    node->left = left;
    node->right = Power();
    left = Grow(node, {node->left, node->right});
  }
}

Expr* Parser::Power() {
  Expr* left = Unary();
  while (Current().IsOperator("**")) {
    auto* node = Make<BinaryExpr>(ExprKind::kBinary, Next().line);
    node->op = BinaryOp::kPower;
    node->left = left;
    node->right = Unary();
    left = Grow(node, {node->left, node->right});
  }
  return left;
}

Expr* Parser::Unary(bool with_filter) {
  Expr* expr;
  if (Current().IsOperator("-") || Current().IsOperator("+")) {
    DepthGuard guard(this);
    const Token& token = Next();
    auto* node =
        Make<UnaryExpr>(token.text == "-" ? ExprKind::kNegate : ExprKind::kPlus, token.line);
    node->operand = Unary(false);
    expr = Grow(node, {node->operand});
  } else {
    expr = Primary();
  }
  expr = Postfix(expr);
  return with_filter ? FilterSuffix(expr) : expr;
}

}  // namespace portico::jinja
