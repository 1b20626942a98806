// Statements.
#include "template/builtin/globals.h"
#include "template/builtin/json_filter.h"
#include "template/run/interpreter.h"
#include "template/value/dict.h"
#include "text/utf8.h"

namespace portico::jinja {
namespace {

// Frames of template code are a few hundred bytes each; this leaves most of a small thread's stack alone.
constexpr size_t kStackBudget = size_t{512} << 10;

}  // namespace

CallDepth::CallDepth(Interpreter* in) : in_(in) {
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  const size_t used =
      static_cast<size_t>(in->stack_base_ > here ? in->stack_base_ - here : here - in->stack_base_);
  if (in->depth_ >= in->options_.max_depth || used > kStackBudget) {
    LimitReached("maximum recursion depth exceeded");
  }
  ++in->depth_;
}

Interpreter::Interpreter(const Program& program, const RenderOptions& options, Arena* arena)
    : program_(program), options_(options), arena_(arena) {}

void Interpreter::StepsReached() const { LimitReached("the template runs for too long"); }
void Interpreter::OutputReached() const { LimitReached("the template's output is too long"); }

void Interpreter::Run(const Template::Variables& variables, std::string* out) {
  stack_base_ = static_cast<const char*>(__builtin_frame_address(0));
  out_ = out;
  track_spans_ = options_.generation_spans != nullptr && program_.has_generation;
  const auto& names = program_.context_names;
  context_.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const Json* found = nullptr;
    for (const auto& [name, value] : variables) {
      if (name == names[i]) found = value;
    }
    if (found != nullptr) {
      context_[i] = FromJson(*found);
    } else if (i < GlobalNames().size()) {
      context_[i] = GlobalValue(i);
    }
  }
  frame_ = NewFrame(program_.root, nullptr);
  Enter(program_.root.scope);
  Execute(program_.root.body);
  CheckSize(*out_);
}

Frame* Interpreter::NewFrame(const Function& function, Frame* parent) {
  Value* slots = arena_->NewArray<Value>(function.slot_count);
  for (uint16_t i = 0; i < function.slot_count; ++i) slots[i] = Value();
  return arena_->New<Frame>(slots, parent);
}

void Interpreter::Enter(const Scope& scope) {
  for (const Load& load : scope) {
    Value& slot = frame_->slots[load.slot];
    switch (load.kind) {
      case Load::kUnset:
        slot = Value();
        break;
      case Load::kContext:
        slot = context_[static_cast<size_t>(load.context_id)];
        break;
      case Load::kAlias:
        slot = Slot(load.alias_depth, load.alias_slot);
        break;
      case Load::kSelf:
        slot = Value(Kind::kSelf);
        break;
    }
  }
}

Interpreter::Flow Interpreter::Execute(StmtList body) {
  for (const Stmt* stmt : body) {
    Step();
    line_ = stmt->line;
    switch (stmt->kind) {
      case StmtKind::kOutput:
        Output(*static_cast<const OutputStmt*>(stmt));
        break;
      case StmtKind::kIf: {
        Flow flow = ExecuteIf(*static_cast<const IfStmt*>(stmt));
        if (flow != Flow::kNext) return flow;
        break;
      }
      case StmtKind::kFor:
        ExecuteFor(*static_cast<const ForStmt*>(stmt));
        break;
      case StmtKind::kSet:
        ExecuteSet(*static_cast<const SetStmt*>(stmt));
        break;
      case StmtKind::kSetBlock:
        ExecuteSetBlock(*static_cast<const SetBlockStmt*>(stmt));
        break;
      case StmtKind::kMacro:
        ExecuteMacro(*static_cast<const MacroStmt*>(stmt));
        break;
      case StmtKind::kCallBlock:
        ExecuteCallBlock(*static_cast<const CallBlockStmt*>(stmt));
        break;
      case StmtKind::kFilterBlock:
        ExecuteFilterBlock(*static_cast<const FilterBlockStmt*>(stmt));
        break;
      case StmtKind::kWith:
        ExecuteWith(*static_cast<const WithStmt*>(stmt));
        break;
      case StmtKind::kScope: {
        const auto& scope = *static_cast<const ScopeStmt*>(stmt);
        Enter(scope.scope);
        Flow flow = Execute(scope.body);
        if (flow != Flow::kNext) return flow;
        break;
      }
      case StmtKind::kGeneration:
        ExecuteGeneration(*static_cast<const GenerationStmt*>(stmt));
        break;
      case StmtKind::kBlock:
        EmitValue(RenderBlock(*static_cast<const BlockStmt*>(stmt)));
        break;
      case StmtKind::kBreak:
        return Flow::kBreak;
      case StmtKind::kContinue:
        return Flow::kContinue;
      case StmtKind::kRefused: {
        const auto& refused = *static_cast<const RefusedStmt*>(stmt);
        Eval(refused.expr);
        Fail(refused.message);
      }
    }
  }
  return Flow::kNext;
}

void Interpreter::Output(const OutputStmt& stmt) {
  for (const OutputItem& item : stmt.items) {
    if (item.expr == nullptr) {
      out_->append(item.text);
    } else {
      line_ = item.expr->line;
      Emit(item.expr);
    }
  }
  CheckSize(*out_);
}

Interpreter::Flow Interpreter::ExecuteIf(const IfStmt& stmt) {
  for (const IfBranch& branch : stmt.branches) {
    if (branch.test == nullptr || EvalTest(branch.test)) return Execute(branch.body);
  }
  return Flow::kNext;
}

void Interpreter::ExecuteFor(const ForStmt& stmt) {
  Value iterable = Eval(stmt.iterable);
  if (stmt.recursive) {
    Loop outside;
    outside.stmt = &stmt;
    outside.frame = frame_;
    outside.depth0 = -1;
    EmitValue(RecurseLoop(&outside, iterable));
    return;
  }
  Loop* loop = nullptr;
  if (stmt.loop_slot >= 0) {
    loop = arena_->New<Loop>();
    loop->iterable = iterable;
  }
  if (!RunLoop(stmt, iterable, loop)) {
    Enter(stmt.else_scope);
    Execute(stmt.otherwise);
  }
}

// Returns whether an iteration reached the end of the body.
bool Interpreter::RunLoop(const ForStmt& stmt, Value iterable, Loop* loop) {
  Loop plain;
  Loop& items = loop != nullptr ? *loop : plain;
  items.iterable = iterable;
  items.iterator = Iterator(*this, iterable);
  items.filter = stmt.test != nullptr ? &stmt : nullptr;
  Value loop_value(Kind::kLoop);
  loop_value.loop = loop;
  bool completed = false;
  for (Value item; items.Next(*this, &item);) {
    if (stmt.target->kind == ExprKind::kName) {
      frame_->slots[static_cast<const NameExpr*>(stmt.target)->slot] = item;
    } else {
      Assign(stmt.target, item);
    }
    if (loop != nullptr) frame_->slots[stmt.loop_slot] = loop_value;
    Enter(stmt.scope);
    Flow flow = Execute(stmt.body);
    if (flow == Flow::kBreak) break;
    completed |= flow == Flow::kNext;
  }
  return completed;
}

Value Interpreter::RecurseLoop(Loop* outer, Value iterable) {
  if (outer->stmt == nullptr) {
    Fail("The loop must have the 'recursive' marker to be called recursively.");
  }
  CallDepth depth(this);
  const ForStmt& stmt = *outer->stmt;
  Frame* saved = frame_;
  frame_ = NewFrame(*stmt.function, static_cast<Frame*>(outer->frame));
  Loop* loop = arena_->New<Loop>();
  loop->stmt = &stmt;
  loop->frame = outer->frame;
  loop->depth0 = outer->depth0 + 1;
  Capture capture(this);
  if (!RunLoop(stmt, iterable, loop)) {
    Enter(stmt.else_scope);
    Execute(stmt.otherwise);
  }
  frame_ = saved;
  return capture.Take();
}

void Interpreter::Assign(const Expr* target, Value value) {
  switch (target->kind) {
    case ExprKind::kName: {
      const auto& name = *static_cast<const NameExpr*>(target);
      frame_->slots[name.slot] = value;
      if (name.export_id >= 0) context_[static_cast<size_t>(name.export_id)] = value;
      return;
    }
    case ExprKind::kNamespaceRef:
      return AssignNamespace(*static_cast<const NamespaceRefExpr*>(target), value);
    default:
      break;
  }
  const auto& targets = static_cast<const ListExpr*>(target)->items;
  if (!IsIterable(value)) {
    Fail("cannot unpack non-iterable ", TypeName(value), " object");
  }
  std::vector<Value> values;
  Iterator it(*this, value);
  for (Value item; it.Next(*this, &item);) {
    if (values.size() == targets.size()) {
      Fail("too many values to unpack (expected ", std::to_string(targets.size()), ")");
    }
    values.push_back(item);
  }
  if (values.size() < targets.size()) {
    Fail("not enough values to unpack (expected ", std::to_string(targets.size()), ", got ",
         std::to_string(values.size()), ")");
  }
  for (size_t i = 0; i < targets.size(); ++i) Assign(targets[i], values[i]);
}

void Interpreter::AssignNamespace(const NamespaceRefExpr& target, Value value) {
  Value space = Slot(target.name->depth, target.name->slot);
  if (!space.is(Kind::kNamespace)) Fail("cannot assign attribute on non-namespace object");
  CheckNamespaceName(target.attribute);
  DictSet(space.dict, Value::String(target.attribute), value, arena_);
}

// Before the value is worked out, as Jinja does.
void Interpreter::CheckNamespaces(const Expr* target) {
  if (target->kind == ExprKind::kTuple) {
    for (const Expr* item : static_cast<const ListExpr*>(target)->items) CheckNamespaces(item);
  } else if (target->kind == ExprKind::kNamespaceRef) {
    const auto& ref = *static_cast<const NamespaceRefExpr*>(target);
    if (!Slot(ref.name->depth, ref.name->slot).is(Kind::kNamespace)) {
      Fail("cannot assign attribute on non-namespace object");
    }
  }
}

void Interpreter::ExecuteSet(const SetStmt& stmt) {
  if (stmt.target->kind != ExprKind::kName) CheckNamespaces(stmt.target);
  Assign(stmt.target, Eval(stmt.value));
}

void Interpreter::ExecuteSetBlock(const SetBlockStmt& stmt) {
  Enter(stmt.scope);
  Capture capture(this);
  Execute(stmt.body);
  Value text = capture.Take();
  if (stmt.filter != nullptr) {
    captured_ = text;
    text = Eval(stmt.filter);
  }
  Assign(stmt.target, text);
}

void Interpreter::ExecuteFilterBlock(const FilterBlockStmt& stmt) {
  Enter(stmt.scope);
  Capture capture(this);
  Execute(stmt.body);
  captured_ = capture.Take();
  EmitString(Eval(stmt.filter));
}

void Interpreter::ExecuteMacro(const MacroStmt& stmt) {
  Value macro(Kind::kMacro);
  macro.macro = arena_->New<Macro>(&stmt.code, frame_);
  Assign(stmt.target, macro);
}

void Interpreter::ExecuteCallBlock(const CallBlockStmt& stmt) {
  Value caller(Kind::kMacro);
  caller.macro = arena_->New<Macro>(&stmt.code, frame_);
  EmitString(EvalCall(*stmt.call, caller));
}

void Interpreter::ExecuteWith(const WithStmt& stmt) {
  Enter(stmt.scope);
  for (size_t i = 0; i < stmt.targets.size(); ++i) Assign(stmt.targets[i], Eval(stmt.values[i]));
  Execute(stmt.body);
}

void Interpreter::ExecuteGeneration(const GenerationStmt& stmt) {
  Macro body{&stmt.code, frame_};
  Capture capture(this);
  const size_t start = out_->size();
  RunMacro(body, CallArguments());
  if (track_spans_) RecordGeneration(start, capture.base());
}

void Interpreter::RecordGeneration(size_t start, size_t base) {
  std::string_view text = *out_;
  counted_points_ += CountCodePoints(text.substr(counted_bytes_, base - counted_bytes_));
  counted_bytes_ = base;
  options_.generation_spans->emplace_back(counted_points_,
                                          counted_points_ + CountCodePoints(text.substr(start)));
}

Value Interpreter::RenderBlock(const BlockStmt& block) {
  CallDepth depth(this);
  Frame* saved = frame_;
  frame_ = NewFrame(block.function, nullptr);
  Enter(block.function.scope);
  Capture capture(this);
  Execute(block.function.body);
  frame_ = saved;
  return capture.Take();
}

Interpreter::Capture::Capture(Interpreter* in) : in_(in), start_(in->out_->size()) {
  if (in_->captures_++ == 0) in_->settled_ = start_;
}

Value Interpreter::Capture::Take() {
  std::string& out = *in_->out_;
  Value text = in_->NewString(std::string_view(out).substr(start_));
  out.resize(start_);
  return text;
}

}  // namespace portico::jinja
