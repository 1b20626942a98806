// The tree of a parsed template. Nodes live in the program's arena; after the resolver has run they never change.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "template/builtin/members.h"
#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;
struct CallArguments;
using FilterFunction = Value (*)(Interpreter&, Value, const CallArguments&);
using TestFunction = bool (*)(Interpreter&, Value, const CallArguments&);

enum class ExprKind : uint8_t {
  kConst,
  kName,
  kNamespaceRef,
  kList,
  kTuple,
  kDict,
  kGetAttr,
  kGetItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kNot,
  kNegate,
  kPlus,
  kAnd,
  kOr,
  kCompare,
  kAdd,     // a + b + …
  kConcat,  // a ~ b ~ …
  kBinary,
  kConditional,
};

struct Expr {
  ExprKind kind;
  uint16_t height = 1;  // of the tree: bounded, because evaluation recurses
  int line = 0;
};
using ExprList = std::span<Expr*>;

struct ConstExpr : Expr {
  Value value;
};

enum class NameUse : uint8_t { kLoad, kStore, kParameter };

// A variable: a slot of the frame `depth` functions outward.
struct NameExpr : Expr {
  std::string_view name;
  NameUse use = NameUse::kLoad;
  uint16_t depth = 0;
  uint16_t slot = 0;
  int export_id = -1;  // context variable that a store at the top level also sets
};

struct NamespaceRefExpr : Expr {
  NameExpr* name;
  std::string_view attribute;
};

struct ListExpr : Expr {  // kList, kTuple, kAnd, kOr, kAdd, kConcat
  ExprList items;
};

struct DictExpr : Expr {
  ExprList keys, values;
};

struct GetAttrExpr : Expr {
  Expr* object;
  std::string_view name;
  Member member;
};

struct GetItemExpr : Expr {
  Expr* object;
  Expr* index;
  // Where the index is a literal string:
  bool is_name = false;
  std::string_view name;
  Member member = Member::kNone;
};

struct SliceExpr : Expr {
  Expr* start;  // each may be null
  Expr* stop;
  Expr* step;
};

struct KeywordArgument {
  std::string_view name;
  Expr* value;
};

struct Arguments {
  ExprList positional;
  std::span<KeywordArgument> keywords;
  Expr* star = nullptr;
  Expr* double_star = nullptr;
  bool empty() const {
    return positional.empty() && keywords.empty() && star == nullptr && double_star == nullptr;
  }
};

struct CallExpr : Expr {
  Expr* callee;
  Arguments arguments;
};

struct FilterExpr : Expr {
  Expr* object;  // null: what the filter block or set block has captured
  std::string_view name;
  FilterFunction function;  // null where no filter has the name: an error when it runs
  Arguments arguments;
};

struct TestExpr : Expr {
  Expr* object;
  std::string_view name;
  TestFunction function;
  Arguments arguments;
};

struct UnaryExpr : Expr {
  Expr* operand;
};

enum class BinaryOp : uint8_t { kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };

struct BinaryExpr : Expr {
  BinaryOp op;
  Expr* left;
  Expr* right;
};

enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct CompareExpr : Expr {
  Expr* first;
  std::span<CompareOp> ops;
  ExprList operands;
};

struct ConditionalExpr : Expr {
  Expr* test;
  Expr* yes;
  Expr* no;  // may be null
};

enum class StmtKind : uint8_t {
  kOutput,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kScope,
  kGeneration,
  kBlock,
  kBreak,
  kContinue,
  kRefused,
};

struct Stmt {
  StmtKind kind;
  int line = 0;
};
using StmtList = std::span<Stmt*>;

// What the variables of a scope hold when it is entered.
struct Load {
  enum Kind : uint8_t { kUnset, kContext, kAlias, kSelf } kind;
  uint16_t slot;
  uint16_t alias_depth;
  uint16_t alias_slot;  // kAlias
  int context_id;       // kContext
};
using Scope = std::span<Load>;

// Code with a frame of its own.
struct Function {
  uint16_t slot_count = 0;
  bool captured = false;  // a macro inside may outlive the call
  Scope scope;
  StmtList body;
};

struct OutputItem {
  std::string_view text;  // where expr is null
  Expr* expr;
};

struct OutputStmt : Stmt {
  std::span<OutputItem> items;
};

struct ForStmt : Stmt {
  Expr* target;
  Expr* iterable;
  Expr* test;  // may be null
  bool recursive;
  StmtList body, otherwise;
  Scope scope, test_scope, else_scope;
  int loop_slot = -1;
  Expr* test_target = nullptr;   // the target as the test sees it
  Function* function = nullptr;  // of a recursive loop: its own frame
};

struct IfBranch {
  Expr* test;  // null: else
  StmtList body;
};

struct IfStmt : Stmt {
  std::span<IfBranch> branches;
};

struct SetStmt : Stmt {
  Expr* target;
  Expr* value;
};

struct SetBlockStmt : Stmt {
  Expr* target;
  Expr* filter;  // may be null
  StmtList body;
  Scope scope;
};

// A macro, or the body of a call block.
struct MacroCode {
  std::string_view name;
  std::span<NameExpr*> parameters;
  ExprList defaults;  // of the last parameters
  StmtList body;
  Function function;
  int caller_slot = -1;
  int kwargs_slot = -1;
  int varargs_slot = -1;
  bool explicit_caller = false;
};

struct MacroStmt : Stmt {
  MacroCode code;
  NameExpr* target;
};

struct CallBlockStmt : Stmt {
  MacroCode code;
  CallExpr* call;
};

struct FilterBlockStmt : Stmt {
  Expr* filter;
  StmtList body;
  Scope scope;
};

struct WithStmt : Stmt {
  ExprList targets, values;
  StmtList body;
  Scope scope;
};

struct ScopeStmt : Stmt {
  StmtList body;
  Scope scope;
};

struct GenerationStmt : Stmt {
  MacroCode code;
};

struct BlockStmt : Stmt {
  std::string_view name;
  StmtList body;
  Function function;
};

// include, import, extends, autoescape with anything but false: an error when it runs.
struct RefusedStmt : Stmt {
  std::string_view message;
  Expr* expr;                    // evaluated first
  std::span<NameExpr*> targets;  // what it would have set
};

}  // namespace portico::jinja
