#include "template/content_format.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "template/syntax/symbols.h"

namespace portico::jinja {
namespace {

class ContentFinder final : public StmtParts {
 public:
  bool Run(StmtList body) {
    // Twice, so that a macro may stand before the call that hands it the content.
    OnBody(body);
    OnBody(body);
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

  void OnExpr(Expr* expr) override {
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
    ForEachChild(expr, [this](Expr* child) { OnExpr(child); });
  }

  void OnCode(const MacroCode& code) override {
    std::vector<std::string_view> added;
    for (size_t i = 0; i < code.parameters.size(); ++i) {
      if (!content_arguments_.contains({code.name, i})) continue;
      if (names_.insert(code.parameters[i]->name).second) added.push_back(code.parameters[i]->name);
    }
    OnBody(code.body);
    for (std::string_view name : added) names_.erase(name);
  }

  void OnBody(StmtList body) override {
    for (Stmt* stmt : body) {
      if (stmt->kind == StmtKind::kFor) {
        found_ = found_ || IsContent(static_cast<ForStmt*>(stmt)->iterable);
      }
      ForEachPart(stmt, this);
      if (stmt->kind != StmtKind::kSet) continue;
      const auto& set = *static_cast<SetStmt*>(stmt);
      if (set.target->kind == ExprKind::kName && IsContent(set.value)) {
        names_.insert(static_cast<NameExpr*>(set.target)->name);
      }
    }
  }

  std::set<std::string_view> names_;
  std::set<std::pair<std::string_view, size_t>> content_arguments_;
  bool found_ = false;
};

}  // namespace

bool LoopsOverContent(const Program& program) { return ContentFinder().Run(program.body); }

}  // namespace portico::jinja
