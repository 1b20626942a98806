// Which variable a name means, decided as Jinja's compiler decides it: every scope lists the names that its code
// loads and stores, and from the order of the two follows what a variable holds when the scope is entered: what the
// scope outside has, what the context has, or nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "template/syntax/nodes.h"

namespace portico::jinja {

// Slots of one function's frame.
struct FunctionSlots {
  FunctionSlots* parent = nullptr;
  uint16_t count = 0;
};

struct VariableRef {
  const FunctionSlots* function;
  uint16_t slot;
};

// The names of one scope. Branches of an `if` work on an overlay that is merged afterwards.
class Symbols {
 public:
  Symbols(const Symbols* parent, FunctionSlots* function);

  void Store(std::string_view name);
  void Load(std::string_view name);
  void DeclareParameter(std::string_view name);
  bool Find(std::string_view name, VariableRef* ref) const;
  FunctionSlots* function() const { return level_->function; }

  enum class LoadKind : uint8_t { kParameter, kContext, kAlias, kUnset };
  struct Entry {
    LoadKind kind;
    VariableRef alias;
    uint16_t slot;
  };
  const std::map<std::string_view, Entry>& entries() const { return entries_; }

  // Visits that note names, as they happen in order.
  void VisitExpr(Expr* expr, bool as_parameter = false);
  void VisitStmt(Stmt* stmt);
  void VisitAll(StmtList body);
  void VisitAll(ExprList exprs, bool as_parameter = false);

 private:
  // Slots by name, shared by a scope and its overlays.
  struct Level {
    FunctionSlots* function;
    std::map<std::string_view, uint16_t> slots;
  };

  explicit Symbols(const Symbols* base);
  bool Knows(std::string_view name) const;
  bool Stores(std::string_view name) const;
  void Define(std::string_view name, LoadKind kind, VariableRef alias = {});
  void VisitIf(std::span<IfBranch> branches);
  void Merge(std::span<const Symbols* const> branches);

  const Symbols* parent_;
  const Symbols* base_ = nullptr;  // what an overlay lies on
  std::shared_ptr<Level> level_;
  std::map<std::string_view, Entry> entries_;
  std::set<std::string_view> stores_;
};

// Calls `visit` for the direct parts of a node, some of them null. It may put another node in a part's place, but not in a
// namespace reference's name.
void ForEachChild(Expr* expr, const std::function<void(Expr*&)>& visit);

// What a statement is made of, in the order of the text.
class StmtParts {
 public:
  virtual ~StmtParts() = default;
  virtual void OnExpr(Expr* expr) = 0;  // may be null; also assignment targets
  virtual void OnBody(StmtList body) = 0;
  virtual void OnCode(const MacroCode& code) = 0;  // of a macro, a call block or a generation block
};
void ForEachPart(Stmt* stmt, StmtParts* parts);

// The names among `names` that the code loads before it stores them.
std::set<std::string_view> FindUndeclared(StmtList body, std::set<std::string_view> names);
// Whether the code stores `loop`, which Jinja forbids inside loops.
bool StoresLoop(const ForStmt& loop);

}  // namespace portico::jinja
