#include "template/syntax/symbols.h"

namespace portico::jinja {
namespace {

using Visit = std::function<void(Expr*&)>;

void Each(ExprList exprs, const Visit& visit) {
  for (Expr*& expr : exprs) visit(expr);
}

void EachArgument(Arguments& arguments, const Visit& visit) {
  Each(arguments.positional, visit);
  for (KeywordArgument& keyword : arguments.keywords) visit(keyword.value);
  visit(arguments.star);
  visit(arguments.double_star);
}

// Loads and stores of names in the order of the text, through nested scopes.
class UndeclaredFinder final : public StmtParts {
 public:
  explicit UndeclaredFinder(std::set<std::string_view> names) : names_(std::move(names)) {}

  void OnExpr(Expr* expr) override {
    if (expr == nullptr) return;
    if (expr->kind != ExprKind::kName) {
      ForEachChild(expr, [this](Expr* child) { OnExpr(child); });
      return;
    }
    auto* name = static_cast<NameExpr*>(expr);
    if (name->use != NameUse::kLoad) {
      names_.erase(name->name);
    } else if (names_.contains(name->name)) {
      found_.insert(name->name);
    }
  }

  void OnBody(StmtList body) override {
    for (Stmt* stmt : body) {
      // A block has a context of its own.
      if (stmt->kind != StmtKind::kBlock) ForEachPart(stmt, this);
    }
  }

  void OnCode(const MacroCode& code) override {
    for (NameExpr* parameter : code.parameters) OnExpr(parameter);
    for (Expr* value : code.defaults) OnExpr(value);
    OnBody(code.body);
  }

  const std::set<std::string_view>& found() const { return found_; }

 private:
  std::set<std::string_view> names_, found_;
};

bool TargetHasLoop(const Expr* target) {
  if (target->kind == ExprKind::kName) {
    const auto* name = static_cast<const NameExpr*>(target);
    return name->use == NameUse::kStore && name->name == "loop";
  }
  if (target->kind != ExprKind::kTuple) return false;
  for (const Expr* item : static_cast<const ListExpr*>(target)->items) {
    if (TargetHasLoop(item)) return true;
  }
  return false;
}

bool BodyStoresLoop(StmtList body) {
  for (Stmt* stmt : body) {
    switch (stmt->kind) {
      case StmtKind::kSet:
        if (TargetHasLoop(static_cast<SetStmt*>(stmt)->target)) return true;
        break;
      case StmtKind::kSetBlock:
        if (TargetHasLoop(static_cast<SetBlockStmt*>(stmt)->target)) return true;
        break;
      case StmtKind::kIf:
        for (IfBranch& branch : static_cast<IfStmt*>(stmt)->branches) {
          if (BodyStoresLoop(branch.body)) return true;
        }
        break;
      default:
        break;
    }
  }
  return false;
}

}  // namespace

void ForEachChild(Expr* expr, const Visit& visit) {
  switch (expr->kind) {
    case ExprKind::kConst:
    case ExprKind::kName:
      break;
    case ExprKind::kNamespaceRef: {
      Expr* name = static_cast<NamespaceRefExpr*>(expr)->name;
      visit(name);
      break;
    }
    case ExprKind::kList:
    case ExprKind::kTuple:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kAdd:
    case ExprKind::kConcat:
      Each(static_cast<ListExpr*>(expr)->items, visit);
      break;
    case ExprKind::kDict: {
      auto* dict = static_cast<DictExpr*>(expr);
      for (size_t i = 0; i < dict->keys.size(); ++i) {
        visit(dict->keys[i]);
        visit(dict->values[i]);
      }
      break;
    }
    case ExprKind::kGetAttr:
      visit(static_cast<GetAttrExpr*>(expr)->object);
      break;
    case ExprKind::kGetItem:
      visit(static_cast<GetItemExpr*>(expr)->object);
      visit(static_cast<GetItemExpr*>(expr)->index);
      break;
    case ExprKind::kSlice:
      visit(static_cast<SliceExpr*>(expr)->start);
      visit(static_cast<SliceExpr*>(expr)->stop);
      visit(static_cast<SliceExpr*>(expr)->step);
      break;
    case ExprKind::kCall:
      visit(static_cast<CallExpr*>(expr)->callee);
      EachArgument(static_cast<CallExpr*>(expr)->arguments, visit);
      break;
    case ExprKind::kFilter:
      visit(static_cast<FilterExpr*>(expr)->object);
      EachArgument(static_cast<FilterExpr*>(expr)->arguments, visit);
      break;
    case ExprKind::kTest:
      visit(static_cast<TestExpr*>(expr)->object);
      EachArgument(static_cast<TestExpr*>(expr)->arguments, visit);
      break;
    case ExprKind::kNot:
    case ExprKind::kNegate:
    case ExprKind::kPlus:
      visit(static_cast<UnaryExpr*>(expr)->operand);
      break;
    case ExprKind::kCompare:
      visit(static_cast<CompareExpr*>(expr)->first);
      Each(static_cast<CompareExpr*>(expr)->operands, visit);
      break;
    case ExprKind::kBinary:
      visit(static_cast<BinaryExpr*>(expr)->left);
      visit(static_cast<BinaryExpr*>(expr)->right);
      break;
    case ExprKind::kConditional:
      visit(static_cast<ConditionalExpr*>(expr)->test);
      visit(static_cast<ConditionalExpr*>(expr)->yes);
      visit(static_cast<ConditionalExpr*>(expr)->no);
      break;
  }
}

void ForEachPart(Stmt* stmt, StmtParts* parts) {
  switch (stmt->kind) {
    case StmtKind::kOutput:
      for (OutputItem& item : static_cast<OutputStmt*>(stmt)->items) parts->OnExpr(item.expr);
      break;
    case StmtKind::kFor: {
      auto* loop = static_cast<ForStmt*>(stmt);
      parts->OnExpr(loop->target);
      parts->OnExpr(loop->iterable);
      parts->OnBody(loop->body);
      parts->OnBody(loop->otherwise);
      parts->OnExpr(loop->test);
      break;
    }
    case StmtKind::kIf:
      for (IfBranch& branch : static_cast<IfStmt*>(stmt)->branches) {
        parts->OnExpr(branch.test);
        parts->OnBody(branch.body);
      }
      break;
    case StmtKind::kSet:
      parts->OnExpr(static_cast<SetStmt*>(stmt)->target);
      parts->OnExpr(static_cast<SetStmt*>(stmt)->value);
      break;
    case StmtKind::kSetBlock:
      parts->OnExpr(static_cast<SetBlockStmt*>(stmt)->target);
      parts->OnExpr(static_cast<SetBlockStmt*>(stmt)->filter);
      parts->OnBody(static_cast<SetBlockStmt*>(stmt)->body);
      break;
    case StmtKind::kMacro:
      parts->OnCode(static_cast<MacroStmt*>(stmt)->code);
      break;
    case StmtKind::kCallBlock:
      parts->OnExpr(static_cast<CallBlockStmt*>(stmt)->call);
      parts->OnCode(static_cast<CallBlockStmt*>(stmt)->code);
      break;
    case StmtKind::kFilterBlock:
      parts->OnBody(static_cast<FilterBlockStmt*>(stmt)->body);
      parts->OnExpr(static_cast<FilterBlockStmt*>(stmt)->filter);
      break;
    case StmtKind::kWith: {
      auto* with = static_cast<WithStmt*>(stmt);
      for (Expr* target : with->targets) parts->OnExpr(target);
      for (Expr* value : with->values) parts->OnExpr(value);
      parts->OnBody(with->body);
      break;
    }
    case StmtKind::kScope:
      parts->OnBody(static_cast<ScopeStmt*>(stmt)->body);
      break;
    case StmtKind::kGeneration:
      parts->OnCode(static_cast<GenerationStmt*>(stmt)->code);
      break;
    case StmtKind::kBlock:
      parts->OnBody(static_cast<BlockStmt*>(stmt)->body);
      break;
    case StmtKind::kRefused:
      parts->OnExpr(static_cast<RefusedStmt*>(stmt)->expr);
      break;
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      break;
  }
}

std::set<std::string_view> FindUndeclared(StmtList body, std::set<std::string_view> names) {
  UndeclaredFinder finder(std::move(names));
  finder.OnBody(body);
  return finder.found();
}

bool StoresLoop(const ForStmt& loop) {
  return TargetHasLoop(loop.target) || BodyStoresLoop(loop.body) || BodyStoresLoop(loop.otherwise);
}

}  // namespace portico::jinja
