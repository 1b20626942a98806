#include "template/syntax/symbols.h"

#include "template/run/failure.h"

namespace portico::jinja {

Symbols::Symbols(const Symbols* parent, FunctionSlots* function)
    : parent_(parent), level_(std::make_shared<Level>(Level{function, {}})) {}

Symbols::Symbols(const Symbols* base) : parent_(base->parent_), base_(base), level_(base->level_) {}

bool Symbols::Knows(std::string_view name) const {
  for (const Symbols* s = this; s != nullptr; s = s->base_) {
    if (s->entries_.contains(name)) return true;
  }
  return false;
}

bool Symbols::Stores(std::string_view name) const {
  for (const Symbols* s = this; s != nullptr; s = s->base_) {
    if (s->stores_.contains(name)) return true;
  }
  return false;
}

bool Symbols::Find(std::string_view name, VariableRef* ref) const {
  for (const Symbols* s = this; s != nullptr; s = s->parent_) {
    if (!s->Knows(name)) continue;
    *ref = {s->level_->function, s->level_->slots.at(name)};
    return true;
  }
  return false;
}

void Symbols::Define(std::string_view name, LoadKind kind, VariableRef alias) {
  auto [slot, is_new] = level_->slots.try_emplace(name, level_->function->count);
  if (is_new && ++level_->function->count == 0xFFFF) {
    throw Failure{StatusCode::kInvalidArgument, "the template has too many variables"};
  }
  entries_[name] = {kind, alias, slot->second};
}

void Symbols::Store(std::string_view name) {
  stores_.insert(name);
  if (Knows(name)) return;
  VariableRef outer;
  if (parent_ != nullptr && parent_->Find(name, &outer)) {
    Define(name, LoadKind::kAlias, outer);
  } else {
    Define(name, LoadKind::kUnset);
  }
}

void Symbols::Load(std::string_view name) {
  VariableRef ref;
  if (!Find(name, &ref)) Define(name, LoadKind::kContext);
}

void Symbols::DeclareParameter(std::string_view name) {
  stores_.insert(name);
  Define(name, LoadKind::kParameter);
}

void Symbols::Merge(std::span<const Symbols* const> branches) {
  std::set<std::string_view> stored;
  for (const Symbols* branch : branches) {
    for (std::string_view name : branch->stores_) {
      if (!Stores(name)) stored.insert(name);
    }
  }
  for (const Symbols* branch : branches) {
    for (const auto& [name, entry] : branch->entries_) entries_[name] = entry;
    stores_.insert(branch->stores_.begin(), branch->stores_.end());
  }
  // A name that only some branches may have stored keeps what it has outside.
  for (std::string_view name : stored) {
    VariableRef outer;
    if (parent_ != nullptr && parent_->Find(name, &outer)) {
      Define(name, LoadKind::kAlias, outer);
    } else {
      Define(name, LoadKind::kContext);
    }
  }
}

void Symbols::VisitIf(std::span<IfBranch> branches) {
  VisitExpr(branches[0].test);
  Symbols body(this), others(this), otherwise(this);
  body.VisitAll(branches[0].body);
  // Each `elif` is an `if` of its own behind the ones before it.
  for (size_t i = 1; i < branches.size(); ++i) {
    if (branches[i].test == nullptr) {
      otherwise.VisitAll(branches[i].body);
    } else {
      others.VisitExpr(branches[i].test);
      Symbols branch(&others);
      branch.VisitAll(branches[i].body);
      const Symbols* only[] = {&branch};
      others.Merge(only);
    }
  }
  const Symbols* all[] = {&body, &others, &otherwise};
  Merge(all);
}

void Symbols::VisitAll(StmtList body) {
  for (Stmt* stmt : body) VisitStmt(stmt);
}

void Symbols::VisitAll(ExprList exprs, bool as_parameter) {
  for (Expr* expr : exprs) VisitExpr(expr, as_parameter);
}

void Symbols::VisitExpr(Expr* expr, bool as_parameter) {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kName) {
    auto* name = static_cast<NameExpr*>(expr);
    if (as_parameter || name->use == NameUse::kParameter) {
      DeclareParameter(name->name);
    } else if (name->use == NameUse::kStore) {
      Store(name->name);
    } else {
      Load(name->name);
    }
    return;
  }
  ForEachChild(expr, [&](Expr* child) { VisitExpr(child, as_parameter); });
}

void Symbols::VisitStmt(Stmt* stmt) {
  switch (stmt->kind) {
    case StmtKind::kOutput:
      for (OutputItem& item : static_cast<OutputStmt*>(stmt)->items) VisitExpr(item.expr);
      break;
    case StmtKind::kFor:
      VisitExpr(static_cast<ForStmt*>(stmt)->iterable);
      break;
    case StmtKind::kIf:
      VisitIf(static_cast<IfStmt*>(stmt)->branches);
      break;
    case StmtKind::kSet:
      VisitExpr(static_cast<SetStmt*>(stmt)->value);
      VisitExpr(static_cast<SetStmt*>(stmt)->target);
      break;
    case StmtKind::kSetBlock:
      VisitExpr(static_cast<SetBlockStmt*>(stmt)->target);
      break;
    case StmtKind::kMacro:
      Store(static_cast<MacroStmt*>(stmt)->code.name);
      break;
    case StmtKind::kCallBlock:
      VisitExpr(static_cast<CallBlockStmt*>(stmt)->call);
      break;
    case StmtKind::kFilterBlock:
      VisitExpr(static_cast<FilterBlockStmt*>(stmt)->filter);
      break;
    case StmtKind::kWith:
      VisitAll(static_cast<WithStmt*>(stmt)->values);
      break;
    case StmtKind::kRefused: {
      auto* refused = static_cast<RefusedStmt*>(stmt);
      VisitExpr(refused->expr);
      for (NameExpr* target : refused->targets) Store(target->name);
      break;
    }
    case StmtKind::kScope:
    case StmtKind::kGeneration:
    case StmtKind::kBlock:
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      break;
  }
}

}  // namespace portico::jinja
