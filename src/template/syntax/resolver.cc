#include "template/syntax/resolver.h"

#include <unordered_map>

#include "template/builtin/globals.h"
#include "template/run/failure.h"
#include "template/syntax/fold.h"
#include "template/syntax/parser.h"
#include "template/syntax/symbols.h"
#include "template/value/bigint.h"

namespace portico::jinja {
namespace {

// Where code stands while it is resolved.
struct Place {
  Symbols* symbols;
  FunctionSlots* function;
  bool top_level = false;  // stores are exported to the context
  bool soft = false;       // inside an if: unknown filters fail only when they run
  bool in_loop = false;    // of the same function
};

class Resolver {
 public:
  explicit Resolver(Program* program) : program_(program), arena_(&program->arena) {
    for (std::string_view name : GlobalNames()) ContextId(name);
  }

  void Run() {
    FunctionSlots slots;
    Symbols symbols(nullptr, &slots);
    FillFunction(&program_->root, program_->body, &symbols, &slots, true);
    for (BlockStmt* block : program_->blocks) {
      FunctionSlots block_slots;
      Symbols block_symbols(nullptr, &block_slots);
      FillFunction(&block->function, block->body, &block_symbols, &block_slots, false);
    }
  }

 private:
  void FillFunction(Function* function, StmtList body, Symbols* symbols, FunctionSlots* slots,
                    bool top_level) {
    const bool uses_self = !FindUndeclared(body, {"self"}).empty();
    if (uses_self) symbols->DeclareParameter("self");
    symbols->VisitAll(body);
    Place place{symbols, slots, top_level};
    VisitAll(body, place);
    function->body = body;
    function->scope = Loads(*symbols, slots);
    if (uses_self) {
      std::vector<Load> loads(function->scope.begin(), function->scope.end());
      VariableRef ref;
      symbols->Find("self", &ref);
      loads.push_back({Load::kSelf, ref.slot, 0, 0, 0});
      function->scope = Span(loads);
    }
    function->slot_count = slots->count;
  }

  int ContextId(std::string_view name) {
    auto [it, is_new] =
        context_ids_.try_emplace(name, static_cast<int>(program_->context_names.size()));
    if (is_new) program_->context_names.push_back(name);
    return it->second;
  }

  template <typename T>
  std::span<T> Span(const std::vector<T>& items) {
    T* data = arena_->NewArray<T>(items.size());
    std::copy(items.begin(), items.end(), data);
    return {data, items.size()};
  }

  static uint16_t Distance(const FunctionSlots* from, const FunctionSlots* to) {
    uint16_t distance = 0;
    for (; from != to; from = from->parent) ++distance;
    return distance;
  }

  Scope Loads(const Symbols& symbols, const FunctionSlots* function) {
    std::vector<Load> loads;
    for (const auto& [name, entry] : symbols.entries()) {
      switch (entry.kind) {
        case Symbols::LoadKind::kParameter:
          break;
        case Symbols::LoadKind::kContext:
          loads.push_back({Load::kContext, entry.slot, 0, 0, ContextId(name)});
          break;
        case Symbols::LoadKind::kAlias:
          loads.push_back({Load::kAlias, entry.slot, Distance(function, entry.alias.function),
                           entry.alias.slot, 0});
          break;
        case Symbols::LoadKind::kUnset:
          loads.push_back({Load::kUnset, entry.slot, 0, 0, 0});
          break;
      }
    }
    return Span(loads);
  }

  // Statements
  void VisitAll(StmtList body, const Place& place) {
    for (Stmt* stmt : body) Visit(stmt, place);
  }

  void Visit(Stmt* stmt, const Place& place) {
    switch (stmt->kind) {
      case StmtKind::kOutput:
        return VisitOutput(static_cast<OutputStmt*>(stmt), place);
      case StmtKind::kFor:
        return VisitFor(static_cast<ForStmt*>(stmt), place);
      case StmtKind::kIf:
        return VisitIf(static_cast<IfStmt*>(stmt), place);
      case StmtKind::kSet: {
        auto* set = static_cast<SetStmt*>(stmt);
        Visit(&set->target, place);
        return Visit(&set->value, place);
      }
      case StmtKind::kSetBlock:
        return VisitSetBlock(static_cast<SetBlockStmt*>(stmt), place);
      case StmtKind::kMacro: {
        auto* macro = static_cast<MacroStmt*>(stmt);
        VisitCode(&macro->code, macro->line, place);
        VisitName(macro->target, place);
        return;
      }
      case StmtKind::kCallBlock: {
        auto* call = static_cast<CallBlockStmt*>(stmt);
        VisitCode(&call->code, call->line, place);
        VisitParts(call->call, place);
        return;
      }
      case StmtKind::kGeneration:
        return VisitCode(&static_cast<GenerationStmt*>(stmt)->code, stmt->line, place);
      case StmtKind::kFilterBlock:
        return VisitFilterBlock(static_cast<FilterBlockStmt*>(stmt), place);
      case StmtKind::kWith:
        return VisitWith(static_cast<WithStmt*>(stmt), place);
      case StmtKind::kScope: {
        auto* scope = static_cast<ScopeStmt*>(stmt);
        Symbols symbols(place.symbols, place.function);
        symbols.VisitAll(scope->body);
        VisitAll(scope->body, Inside(place, &symbols));
        scope->scope = Loads(symbols, place.function);
        return;
      }
      case StmtKind::kBreak:
      case StmtKind::kContinue:
        if (!place.in_loop) {
          SyntaxError(stmt->line, stmt->kind == StmtKind::kBreak
                                      ? "'break' outside loop"
                                      : "'continue' not properly in loop");
        }
        return;
      case StmtKind::kRefused:
        return Visit(&static_cast<RefusedStmt*>(stmt)->expr, place);
      case StmtKind::kBlock:
        return;
    }
  }

  void VisitIf(IfStmt* stmt, const Place& place) {
    Place inside = place;
    inside.soft = true;
    for (IfBranch& branch : stmt->branches) {
      Visit(&branch.test, inside);
      VisitAll(branch.body, inside);
    }
  }

  void VisitSetBlock(SetBlockStmt* set, const Place& place) {
    Symbols symbols(place.symbols, place.function);
    symbols.VisitAll(set->body);
    Place inside = Inside(place, &symbols);
    VisitAll(set->body, inside);
    Visit(&set->target, place);
    Visit(&set->filter, inside);
    set->scope = Loads(symbols, place.function);
  }

  void VisitFilterBlock(FilterBlockStmt* filter, const Place& place) {
    Symbols symbols(place.symbols, place.function);
    symbols.VisitAll(filter->body);
    symbols.VisitExpr(filter->filter);
    Place inside = Inside(place, &symbols);
    VisitAll(filter->body, inside);
    Visit(&filter->filter, inside);
    filter->scope = Loads(symbols, place.function);
  }

  void VisitWith(WithStmt* with, const Place& place) {
    Symbols symbols(place.symbols, place.function);
    symbols.VisitAll(with->targets);
    symbols.VisitAll(with->body);
    Place inside = Inside(place, &symbols);
    for (size_t i = 0; i < with->targets.size(); ++i) {
      Visit(&with->targets[i], inside);
      Visit(&with->values[i], place);
    }
    VisitAll(with->body, inside);
    with->scope = Loads(symbols, place.function);
  }

  static Place Inside(const Place& place, Symbols* symbols) {
    return {symbols, place.function, false, false, place.in_loop};
  }

  void VisitOutput(OutputStmt* stmt, const Place& place) {
    for (OutputItem& item : stmt->items) {
      if (item.expr != nullptr) Visit(&item.expr, place);
    }
    stmt->items = MergeText(stmt->items, arena_);
  }

  Expr* CloneTarget(const Expr* target) {
    if (target->kind == ExprKind::kName) {
      return arena_->New<NameExpr>(*static_cast<const NameExpr*>(target));
    }
    auto* copy = arena_->New<ListExpr>(*static_cast<const ListExpr*>(target));
    std::vector<Expr*> items;
    for (const Expr* item : copy->items) items.push_back(CloneTarget(item));
    copy->items = Span(items);
    return copy;
  }

  void VisitFor(ForStmt* loop, const Place& place) {
    if (StoresLoop(*loop)) {
      SyntaxError(loop->line, "Can't assign to special loop variable in for-loop target");
    }
    Visit(&loop->iterable, place);
    FunctionSlots own;
    own.parent = place.function;
    FunctionSlots* function = loop->recursive ? &own : place.function;
    Place outside = place;
    outside.function = function;

    if (loop->test != nullptr) {
      loop->test_target = CloneTarget(loop->target);
      Symbols symbols(place.symbols, function);
      symbols.VisitExpr(loop->test_target, true);
      symbols.VisitExpr(loop->test);
      Place inside = Inside(outside, &symbols);
      Visit(&loop->test_target, inside);
      Visit(&loop->test, inside);
      loop->test_scope = Loads(symbols, function);
    }
    Symbols symbols(place.symbols, function);
    const bool extended = loop->recursive || !FindUndeclared(loop->body, {"loop"}).empty();
    if (extended) symbols.DeclareParameter("loop");
    symbols.VisitExpr(loop->target, true);
    symbols.VisitAll(loop->body);
    Place inside = Inside(outside, &symbols);
    inside.in_loop = true;
    Visit(&loop->target, inside);
    VisitAll(loop->body, inside);
    loop->scope = Loads(symbols, function);
    if (extended) {
      VariableRef ref;
      symbols.Find("loop", &ref);
      loop->loop_slot = ref.slot;
    }
    if (!loop->otherwise.empty()) {
      Symbols else_symbols(place.symbols, function);
      else_symbols.VisitAll(loop->otherwise);
      VisitAll(loop->otherwise, Inside(outside, &else_symbols));
      loop->else_scope = Loads(else_symbols, function);
    }
    if (loop->recursive) {
      loop->function = arena_->New<Function>();
      loop->function->slot_count = own.count;
      loop->function->captured = true;
    }
  }

  int SlotOf(const Symbols& symbols, std::string_view name) {
    VariableRef ref;
    symbols.Find(name, &ref);
    return ref.slot;
  }

  void VisitCode(MacroCode* code, int line, const Place& place) {
    FunctionSlots slots;
    slots.parent = place.function;
    Symbols symbols(place.symbols, &slots);
    for (NameExpr* parameter : code->parameters) symbols.VisitExpr(parameter);
    symbols.VisitAll(code->defaults);
    symbols.VisitAll(code->body);
    bool own_kwargs = false;
    bool own_varargs = false;
    size_t caller_at = code->parameters.size();
    for (size_t i = 0; i < code->parameters.size(); ++i) {
      std::string_view name = code->parameters[i]->name;
      if (name == "caller") caller_at = i;
      own_kwargs |= name == "kwargs";
      own_varargs |= name == "varargs";
    }
    code->explicit_caller = caller_at < code->parameters.size();
    auto used = FindUndeclared(code->body, {"caller", "kwargs", "varargs"});
    if (used.contains("caller")) {
      if (!code->explicit_caller) {
        symbols.DeclareParameter("caller");
        code->caller_slot = SlotOf(symbols, "caller");
      } else if (caller_at + code->defaults.size() < code->parameters.size()) {
        SyntaxError(line,
                    "When defining macros or call blocks the special \"caller\" argument must be "
                    "omitted or be given a default.");
      }
    }
    if (used.contains("kwargs") && !own_kwargs) {
      symbols.DeclareParameter("kwargs");
      code->kwargs_slot = SlotOf(symbols, "kwargs");
    }
    if (used.contains("varargs") && !own_varargs) {
      symbols.DeclareParameter("varargs");
      code->varargs_slot = SlotOf(symbols, "varargs");
    }
    Place inside{&symbols, &slots};
    for (NameExpr* parameter : code->parameters) VisitName(parameter, inside);
    for (Expr*& value : code->defaults) Visit(&value, inside);
    VisitAll(code->body, inside);
    code->function.scope = Loads(symbols, &slots);
    code->function.body = code->body;
    code->function.slot_count = slots.count;
  }

  // Expressions
  void VisitName(NameExpr* name, const Place& place) {
    VariableRef ref;
    if (!place.symbols->Find(name->name, &ref)) {
      throw Failure{StatusCode::kInternal, "unresolved name " + std::string(name->name)};
    }
    name->depth = Distance(place.function, ref.function);
    name->slot = ref.slot;
    if (name->use == NameUse::kStore && place.top_level) name->export_id = ContextId(name->name);
  }

  void Visit(Expr** expr, const Place& place) {
    if (*expr == nullptr) return;
    VisitParts(*expr, place);
    *expr = Fold(*expr, arena_);
  }

  void VisitParts(Expr* expr, const Place& place) {
    Place inside = place;
    switch (expr->kind) {
      case ExprKind::kName:
        return VisitName(static_cast<NameExpr*>(expr), place);
      case ExprKind::kNamespaceRef:
        return VisitName(static_cast<NamespaceRefExpr*>(expr)->name, place);
      case ExprKind::kFilter: {
        auto* filter = static_cast<FilterExpr*>(expr);
        if (filter->function == nullptr && !place.soft) {
          SyntaxError(filter->line, "No filter named '", filter->name, "'.");
        }
        break;
      }
      case ExprKind::kTest: {
        auto* test = static_cast<TestExpr*>(expr);
        if (test->function == nullptr && !place.soft) {
          SyntaxError(test->line, "No test named '", test->name, "'.");
        }
        break;
      }
      case ExprKind::kConditional:
        inside.soft = true;
        break;
      default:
        break;
    }
    ForEachChild(expr, [&](Expr*& child) { Visit(&child, inside); });
  }

  Program* program_;
  Arena* arena_;
  std::unordered_map<std::string_view, int> context_ids_;
};

}  // namespace

void Resolve(Program* program) { Resolver(program).Run(); }

void Compile(Program* program) {
  program->body = Parser(program).Run();
  Resolve(program);
}

}  // namespace portico::jinja
