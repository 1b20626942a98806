// Statements: what stands in {% %}, and the text between.
#include <algorithm>

#include "template/run/failure.h"
#include "template/syntax/parser.h"

namespace portico::jinja {
StmtList Parser::Statements(EndTags ends) {
  std::vector<Stmt*> body;
  std::vector<OutputItem> output;
  int output_line = 0;
  auto flush = [&] {
    if (output.empty()) return;
    auto* stmt = MakeStmt<OutputStmt>(StmtKind::kOutput, output_line);
    stmt->items = Span(output);
    body.push_back(stmt);
    output.clear();
  };
  while (Current().type != TokenType::kEnd) {
    const Token& token = Next();
    if (output.empty()) output_line = token.line;
    if (token.type == TokenType::kData) {
      program_->size_hint += token.text.size();
      output.push_back({token.text, nullptr});
    } else if (token.type == TokenType::kVariableBegin) {
      output.push_back({{}, Tuple()});
      if (Current().type != TokenType::kVariableEnd) Unexpected("end of print statement");
      Next();
    } else {
      flush();
      if (Current().type == TokenType::kName &&
          std::find(ends.begin(), ends.end(), Current().text) != ends.end()) {
        return Span(body);
      }
      open_.push_back({Current().text, token.line});
      if (Stmt* stmt = Statement(ends)) body.push_back(stmt);
      open_.pop_back();
      ExpectBlockEnd();
    }
  }
  if (ends.size() != 0) {
    SyntaxError(Current().line, "Unexpected end of template", Unclosed(ends), ".");
  }
  flush();
  return Span(body);
}

StmtList Parser::Body(EndTags ends) {
  SkipOperator(":");
  ExpectBlockEnd();
  return Statements(ends);
}

StmtList Parser::BodyAndEnd(std::string_view end) {
  StmtList body = Body({end});
  Next();
  return body;
}

// Says which statement is open, and what may end its body.
std::string Parser::Unclosed(EndTags ends) const {
  if (open_.empty()) return {};
  std::string out = ": the '";
  out.append(open_.back().name).append("' of line ").append(std::to_string(open_.back().line));
  out.append(" wants ");
  for (auto end = ends.begin(); end != ends.end(); ++end) {
    if (end != ends.begin()) out.append(end + 1 == ends.end() ? " or " : ", ");
    out.append("'").append(*end).append("'");
  }
  return out;
}

Stmt* Parser::Statement(EndTags ends) {
  DepthGuard guard(this);
  const Token& token = Current();
  if (token.type != TokenType::kName) SyntaxError(token.line, "tag name expected");
  std::string_view name = token.text;
  if (name == "for") return For();
  if (name == "if") return If();
  if (name == "set") return Set();
  if (name == "macro") return Macro();
  if (name == "call") return CallBlock();
  if (name == "filter") return FilterBlock();
  if (name == "with") return With();
  if (name == "autoescape") return AutoEscape();
  if (name == "print") return Print();
  if (name == "generation") return Generation();
  if (name == "block") return Block();
  if (name == "break") return MakeStmt<Stmt>(StmtKind::kBreak, Next().line);
  if (name == "continue") return MakeStmt<Stmt>(StmtKind::kContinue, Next().line);
  if (name == "include") return IncludeOrExtends("include is not supported");
  if (name == "extends") return IncludeOrExtends("extends is not supported");
  if (name == "import") return Import(false);
  if (name == "from") return Import(true);
  open_.pop_back();  // it opens nothing
  SyntaxError(token.line, "Encountered unknown tag '", name, "'", Unclosed(ends), ".");
}

Stmt* Parser::For() {
  auto* stmt = MakeStmt<ForStmt>(StmtKind::kFor, Next().line);
  stmt->target = AssignTarget(false, "in");
  ExpectName("in");
  stmt->iterable = Tuple({.with_conditional = false, .end_name = "recursive"});
  if (SkipName("if")) stmt->test = Expression();
  stmt->recursive = SkipName("recursive");
  stmt->body = Body({"endfor", "else"});
  if (Next().text == "else") stmt->otherwise = BodyAndEnd("endfor");
  return stmt;
}

Stmt* Parser::If() {
  auto* stmt = MakeStmt<IfStmt>(StmtKind::kIf, Next().line);
  std::vector<IfBranch> branches;
  while (true) {
    Expr* test = Tuple({.with_conditional = false});
    branches.push_back({test, Body({"elif", "else", "endif"})});
    std::string_view end = Next().text;
    if (end == "elif") continue;
    if (end == "else") branches.push_back({nullptr, BodyAndEnd("endif")});
    break;
  }
  stmt->branches = Span(branches);
  return stmt;
}

Stmt* Parser::Set() {
  int line = Next().line;
  Expr* target = AssignTarget(true);
  if (SkipOperator("=")) {
    auto* stmt = MakeStmt<SetStmt>(StmtKind::kSet, line);
    stmt->target = target;
    stmt->value = Tuple();
    return stmt;
  }
  auto* stmt = MakeStmt<SetBlockStmt>(StmtKind::kSetBlock, line);
  stmt->target = target;
  stmt->filter = Filters(nullptr);
  stmt->body = BodyAndEnd("endset");
  return stmt;
}

Stmt* Parser::Macro() {
  auto* stmt = MakeStmt<MacroStmt>(StmtKind::kMacro, Next().line);
  stmt->target = TargetName();
  stmt->code.name = stmt->target->name;
  Signature(&stmt->code);
  stmt->code.body = BodyAndEnd("endmacro");
  return stmt;
}

void Parser::Signature(MacroCode* code) {
  std::vector<NameExpr*> parameters;
  std::vector<Expr*> defaults;
  ExpectOperator("(");
  while (!Current().IsOperator(")")) {
    if (!parameters.empty()) ExpectOperator(",");
    NameExpr* parameter = TargetName();
    parameter->use = NameUse::kParameter;
    for (const NameExpr* other : parameters) {
      if (other->name == parameter->name) {
        SyntaxError(parameter->line, "duplicate argument '", other->name, "'");
      }
    }
    if (SkipOperator("=")) {
      defaults.push_back(Expression());
    } else if (!defaults.empty()) {
      SyntaxError(parameter->line, "non-default argument follows default argument");
    }
    parameters.push_back(parameter);
  }
  ExpectOperator(")");
  code->parameters = Span(parameters);
  code->defaults = Span(defaults);
}

Stmt* Parser::CallBlock() {
  auto* stmt = MakeStmt<CallBlockStmt>(StmtKind::kCallBlock, Next().line);
  if (Current().IsOperator("(")) Signature(&stmt->code);
  Expr* call = Expression();
  if (call->kind != ExprKind::kCall) SyntaxError(stmt->line, "expected call");
  stmt->call = static_cast<CallExpr*>(call);
  stmt->code.body = BodyAndEnd("endcall");
  return stmt;
}

Stmt* Parser::FilterBlock() {
  auto* stmt = MakeStmt<FilterBlockStmt>(StmtKind::kFilterBlock, Next().line);
  stmt->filter = Filters(nullptr, true);
  stmt->body = BodyAndEnd("endfilter");
  return stmt;
}

Stmt* Parser::With() {
  auto* stmt = MakeStmt<WithStmt>(StmtKind::kWith, Next().line);
  std::vector<Expr*> targets, values;
  while (Current().type != TokenType::kBlockEnd) {
    if (!targets.empty()) ExpectOperator(",");
    Expr* target = AssignTarget(false);
    SetUse(target, NameUse::kParameter);
    targets.push_back(target);
    ExpectOperator("=");
    values.push_back(Expression());
  }
  stmt->targets = Span(targets);
  stmt->values = Span(values);
  stmt->body = BodyAndEnd("endwith");
  return stmt;
}

Stmt* Parser::AutoEscape() {
  int line = Next().line;
  Expr* on = Expression();
  StmtList body = BodyAndEnd("endautoescape");
  if (on->kind == ExprKind::kConst) {
    Value value = static_cast<ConstExpr*>(on)->value;
    if (value.is(Kind::kBool) && !value.b) {
      auto* stmt = MakeStmt<ScopeStmt>(StmtKind::kScope, line);
      stmt->body = body;
      return stmt;
    }
  }
  auto* stmt = MakeStmt<RefusedStmt>(StmtKind::kRefused, line);
  stmt->message = "autoescape is not supported";
  stmt->expr = on;
  return stmt;
}

Stmt* Parser::Print() {
  auto* stmt = MakeStmt<OutputStmt>(StmtKind::kOutput, Next().line);
  std::vector<OutputItem> items;
  while (Current().type != TokenType::kBlockEnd) {
    if (!items.empty()) ExpectOperator(",");
    items.push_back({{}, Expression()});
  }
  stmt->items = Span(items);
  return stmt;
}

Stmt* Parser::Generation() {
  auto* stmt = MakeStmt<GenerationStmt>(StmtKind::kGeneration, Next().line);
  stmt->code.body = BodyAndEnd("endgeneration");
  program_->has_generation = true;
  return stmt;
}

Stmt* Parser::Block() {
  auto* stmt = MakeStmt<BlockStmt>(StmtKind::kBlock, Next().line);
  stmt->name = ExpectAnyName();
  for (const BlockStmt* other : program_->blocks) {
    if (other->name == stmt->name) {
      SyntaxError(stmt->line, "block '", stmt->name, "' defined twice");
    }
  }
  if (Current().IsName("scoped") || Current().IsName("required")) {
    SyntaxError(stmt->line, "scoped and required blocks are not supported");
  }
  stmt->body = BodyAndEnd("endblock");
  SkipName(stmt->name);
  program_->blocks.push_back(stmt);
  return stmt;
}

Stmt* Parser::IncludeOrExtends(std::string_view message) {
  auto* stmt = MakeStmt<RefusedStmt>(StmtKind::kRefused, Next().line);
  stmt->message = message;
  stmt->expr = Expression();
  if (Current().IsName("ignore") && Ahead().IsName("missing")) {
    Next();
    Next();
  }
  SkipContextClause();
  return stmt;
}

void Parser::SkipContextClause() {
  if ((Current().IsName("with") || Current().IsName("without")) && Ahead().IsName("context")) {
    Next();
    Next();
  }
}

Stmt* Parser::Import(bool from) {
  auto* stmt = MakeStmt<RefusedStmt>(StmtKind::kRefused, Next().line);
  stmt->message = "import is not supported";
  stmt->expr = Expression();
  std::vector<NameExpr*> targets;
  if (from) {
    ExpectName("import");
    do {
      NameExpr* name = TargetName();
      targets.push_back(SkipName("as") ? TargetName() : name);
    } while (SkipOperator(","));
  } else {
    ExpectName("as");
    targets.push_back(TargetName());
  }
  SkipContextClause();
  stmt->targets = Span(targets);
  return stmt;
}

NameExpr* Parser::TargetName() {
  int line = Current().line;
  auto* name = Make<NameExpr>(ExprKind::kName, line);
  name->name = ExpectAnyName();
  name->use = NameUse::kStore;
  if (name->name == "true" || name->name == "false" || name->name == "none" ||
      name->name == "True" || name->name == "False" || name->name == "None") {
    SyntaxError(line, "can't assign to 'const'");
  }
  return name;
}

Expr* Parser::AssignTarget(bool with_namespace, std::string_view end_name) {
  Expr* target =
      Tuple({.simplified = true, .end_name = end_name, .with_namespace = with_namespace});
  SetUse(target, NameUse::kStore);
  return target;
}

void Parser::SetUse(Expr* target, NameUse use) {
  if (target->kind == ExprKind::kName) {
    static_cast<NameExpr*>(target)->use = use;
  } else if (target->kind == ExprKind::kTuple) {
    for (Expr* item : static_cast<ListExpr*>(target)->items) SetUse(item, use);
  } else if (target->kind != ExprKind::kNamespaceRef) {
    SyntaxError(target->line, "can't assign to this expression");
  }
}

}  // namespace portico::jinja
