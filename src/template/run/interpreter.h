// One render: walks the tree of a program over a context. Throws Failure and OutOfMemory; used by one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "template/builtin/arguments.h"
#include "template/run/failure.h"
#include "template/run/iteration.h"
#include "template/syntax/program.h"
#include "template/template.h"
#include "template/value/arena.h"
#include "template/value/operations.h"

namespace portico::jinja {

// Slots of a running function, and the frame of the function around it.
struct Frame {
  Value* slots;
  Frame* parent;
};

struct Macro {
  const MacroCode* code;
  Frame* frame;
};

struct BoundMethod {
  Value object;
  Member member;
};

struct Block {
  const BlockStmt* stmt;
};

class Interpreter {
 public:
  Interpreter(const Program& program, const RenderOptions& options, Arena* arena);

  // Renders into `out`, which is empty.
  void Run(const Template::Variables& variables, std::string* out);

  Arena& arena() { return *arena_; }
  const Program& program() const { return program_; }
  const RenderOptions& options() const { return options_; }
  int line() const { return line_; }

  // Counts work against the render's limit.
  void Step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > options_.max_steps) StepsReached();
  }
  void CheckSize(const std::string& text) const {
    if (text.size() > options_.max_output_bytes) OutputReached();
  }

  // Values in the arena.
  Value NewString(std::string_view text, uint8_t flags = 0);
  Value NewList(const Value* items, size_t count, Kind kind = Kind::kList);
  Value NewList(const std::vector<Value>& items, Kind kind = Kind::kList) {
    return NewList(items.data(), items.size(), kind);
  }
  Value NewPair(Value a, Value b);
  Value Undefined(std::string_view hint);
  Value UndefinedItem(Value object, Value name);

  // Jinja's subscription: attribute first or item first.
  Value GetAttr(Value object, const std::string_view* name, Member member);
  Value GetItem(Value object, Value index);
  // A member that HasMember() says is there.
  Value ReadMember(Value object, Member member, std::string_view name);

  Value Call(Value callee, const CallArguments& arguments);
  Value CallMacro(const Macro& macro, const CallArguments& arguments);
  Value CallMethod(Value object, Member member, const CallArguments& arguments);
  Value ApplyFilter(Value name, Value object, const CallArguments& arguments);
  bool ApplyTest(Value name, Value object, const CallArguments& arguments);
  Value RecurseLoop(Loop* loop, Value iterable);
  Value RenderBlock(const BlockStmt& block);

  Value Eval(const Expr* expr);
  bool EvalTest(const Expr* expr);
  // For the filter of a loop.
  void Assign(const Expr* target, Value value);
  void Enter(const Scope& scope);

 private:
  friend class CallDepth;
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  [[noreturn]] void StepsReached() const;
  [[noreturn]] void OutputReached() const;

  Value& Slot(uint16_t depth, uint16_t slot) {
    Frame* frame = frame_;
    for (; depth > 0; --depth) frame = frame->parent;
    return frame->slots[slot];
  }
  Frame* NewFrame(const Function& function, Frame* parent);

  // Statements (execute.cc)
  Flow Execute(StmtList body);
  void Output(const OutputStmt& stmt);
  Flow ExecuteIf(const IfStmt& stmt);
  void ExecuteFor(const ForStmt& stmt);
  bool RunLoop(const ForStmt& stmt, Value iterable, Loop* loop);
  void ExecuteSet(const SetStmt& stmt);
  void ExecuteSetBlock(const SetBlockStmt& stmt);
  void ExecuteMacro(const MacroStmt& stmt);
  void ExecuteCallBlock(const CallBlockStmt& stmt);
  void ExecuteFilterBlock(const FilterBlockStmt& stmt);
  void ExecuteWith(const WithStmt& stmt);
  void ExecuteGeneration(const GenerationStmt& stmt);
  void AssignNamespace(const NamespaceRefExpr& target, Value value);
  void CheckNamespaces(const Expr* target);

  // Expressions (evaluate.cc)
  void Emit(const Expr* expr);
  void EmitValue(Value value);
  // Where Jinja does not ask for str(value), so that nothing else will do.
  void EmitString(Value value);
  Value EvalName(const NameExpr& name);
  Value EvalGetAttr(const GetAttrExpr& expr);
  Value EvalGetItem(const GetItemExpr& expr);
  Value EvalDict(const DictExpr& expr);
  Value EvalSequence(const ListExpr& expr);
  Value EvalCall(const CallExpr& expr, Value caller = Value());
  Value EvalFilter(const FilterExpr& expr);
  bool EvalTestExpr(const TestExpr& expr);
  bool EvalCompare(const CompareExpr& expr);
  Value EvalAdd(const ListExpr& expr);
  Value EvalConcat(const ListExpr& expr);
  void EmitAdd(const ListExpr& expr);
  bool EmitCall(const CallExpr& expr);
  bool CompareOnce(CompareOp op, Value left, Value right);
  CallArguments EvalArguments(const Arguments& arguments);
  Value BindMember(Value object, Member member, std::string_view name);

  // Output that is wanted as a value, from its making on: it lies at the end of the output meanwhile.
  class Capture {
   public:
    explicit Capture(Interpreter* in);
    ~Capture() { --in_->captures_; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    // The text, taken off the output.
    Value Take();
    // Where the output ends that stands outside all captures.
    size_t base() const { return in_->settled_; }

   private:
    Interpreter* in_;
    size_t start_;
  };
  void RecordGeneration(size_t start, size_t base);
  // The macro's text goes to the output.
  void RunMacro(const Macro& macro, const CallArguments& arguments);

  const Program& program_;
  const RenderOptions& options_;
  Arena* arena_;
  std::string* out_ = nullptr;
  Frame* frame_ = nullptr;
  std::vector<Value> context_;  // by context id
  uint64_t steps_ = 0;
  int depth_ = 0;
  int line_ = 0;
  const char* stack_base_ = nullptr;
  Value captured_;  // what a filter block or set block gives its filter

  // Of generation spans: they count from the output outside all captures, as transformers counts.
  bool track_spans_ = false;
  int captures_ = 0;
  size_t settled_ = 0;  // bytes of output before the outermost capture
  size_t counted_bytes_ = 0;
  size_t counted_points_ = 0;
};

// Counts a call that runs template code while it lives; throws at the limit of depth or stack.
class CallDepth {
 public:
  explicit CallDepth(Interpreter* in);
  ~CallDepth() { --in_->depth_; }
  CallDepth(const CallDepth&) = delete;
  CallDepth& operator=(const CallDepth&) = delete;

 private:
  Interpreter* in_;
};

}  // namespace portico::jinja
