#include "template/content_format.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "template/symbols.h"

namespace portico::jinja {
namespace {

class ContentFinder {
 public:
  bool Run(StmtList body) {
    // Twice, so that a macro may stand before the call that hands it the content.
    Visit(body);
    Visit(body);
    return found_;
  }

 private:
  bool IsContent(const Expr* expr) const {
    while (true) {
      switch (expr->kind) {
        case ExprKind::kGetAttr:
          return static_cast<const GetAttrExpr*>(expr)->name == "content";
        case ExprKind::kGetItem: {
          const auto& item = *static_cast<const GetItemExpr*>(expr);
          if (item.is_name) return item.name == "content";
          expr = item.object;
          break;
        }
        case ExprKind::kFilter:
          expr = static_cast<const FilterExpr*>(expr)->object;
          if (expr == nullptr) return false;
          break;
        case ExprKind::kName:
          return names_.contains(static_cast<const NameExpr*>(expr)->name);
        default:
          return false;
      }
    }
  }

  void VisitCalls(Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kCall) {
      const auto& call = *static_cast<const CallExpr*>(expr);
      if (call.callee->kind == ExprKind::kName) {
        std::string_view callee = static_cast<const NameExpr*>(call.callee)->name;
        for (size_t i = 0; i < call.arguments.positional.size(); ++i) {
          if (IsContent(call.arguments.positional[i])) content_arguments_.emplace(callee, i);
        }
      }
    }
    ForEachChild(expr, [this](Expr* child) { VisitCalls(child); });
  }

  void VisitMacro(const MacroCode& code) {
    std::vector<std::string_view> added;
    for (size_t i = 0; i < code.parameters.size(); ++i) {
      if (!content_arguments_.contains({code.name, i})) continue;
      if (names_.insert(code.parameters[i]->name).second) added.push_back(code.parameters[i]->name);
    }
    Visit(code.body);
    for (std::string_view name : added) names_.erase(name);
  }

  void Visit(StmtList body) {
    for (Stmt* stmt : body) Visit(stmt);
  }

  void Visit(Stmt* stmt) {
    switch (stmt->kind) {
      case StmtKind::kOutput:
        for (OutputItem& item : static_cast<OutputStmt*>(stmt)->items) VisitCalls(item.expr);
        break;
      case StmtKind::kFor: {
        auto* loop = static_cast<ForStmt*>(stmt);
        VisitCalls(loop->iterable);
        if (IsContent(loop->iterable)) found_ = true;
        Visit(loop->body);
        Visit(loop->otherwise);
        break;
      }
      case StmtKind::kIf:
        for (IfBranch& branch : static_cast<IfStmt*>(stmt)->branches) {
          VisitCalls(branch.test);
          Visit(branch.body);
        }
        break;
      case StmtKind::kSet: {
        auto* set = static_cast<SetStmt*>(stmt);
        VisitCalls(set->value);
        if (set->target->kind == ExprKind::kName && IsContent(set->value)) {
          names_.insert(static_cast<NameExpr*>(set->target)->name);
        }
        break;
      }
      case StmtKind::kSetBlock:
        Visit(static_cast<SetBlockStmt*>(stmt)->body);
        break;
      case StmtKind::kMacro:
        VisitMacro(static_cast<MacroStmt*>(stmt)->code);
        break;
      case StmtKind::kCallBlock:
        VisitCalls(static_cast<CallBlockStmt*>(stmt)->call);
        VisitMacro(static_cast<CallBlockStmt*>(stmt)->code);
        break;
      case StmtKind::kFilterBlock:
        Visit(static_cast<FilterBlockStmt*>(stmt)->body);
        break;
      case StmtKind::kWith:
        Visit(static_cast<WithStmt*>(stmt)->body);
        break;
      case StmtKind::kScope:
        Visit(static_cast<ScopeStmt*>(stmt)->body);
        break;
      case StmtKind::kGeneration:
        VisitMacro(static_cast<GenerationStmt*>(stmt)->code);
        break;
      case StmtKind::kBlock:
        Visit(static_cast<BlockStmt*>(stmt)->body);
        break;
      case StmtKind::kBreak:
      case StmtKind::kContinue:
      case StmtKind::kRefused:
        break;
    }
  }

  std::set<std::string_view> names_;
  std::set<std::pair<std::string_view, size_t>> content_arguments_;
  bool found_ = false;
};

}  // namespace

bool LoopsOverContent(const Program& program) { return ContentFinder().Run(program.body); }

}  // namespace portico::jinja
