// Iteration over anything Python iterates, and the lazy results of filters.
#pragma once

#include <string_view>

#include "template/builtin/arguments.h"
#include "template/value/value.h"

namespace portico::jinja {

class Interpreter;
struct ForStmt;

// A position in an iterable. Trivially destructible: it lives in the arena or on the stack.
class Iterator {
 public:
  Iterator() = default;
  // Throws Failure where the value cannot be iterated.
  Iterator(Interpreter& in, Value iterable);

  // False at the end.
  bool Next(Interpreter& in, Value* out);

 private:
  bool NextOfLazy(Interpreter& in, Value* out);

  Value source_;
  size_t position_ = 0;
  size_t size_ = 0;
};

// Whether iter(v) works.
bool IsIterable(Value v);

enum class GeneratorKind : uint8_t {
  kMap,
  kSelect,
  kReject,
  kSelectAttr,
  kRejectAttr,
  kItems,
  kUnique,
  kBatch,
  kSlice,
  kReverse,
};

// What map, select and the like return: consumed once, item by item.
struct Generator {
  GeneratorKind kind;
  bool started = false;
  bool finished = false;
  Value source;
  Iterator iterator;
  CallArguments arguments;
  Value a, b, c;  // parameters of unique, batch, slice
  Dict* seen = nullptr;
  size_t position = 0;

  bool Next(Interpreter& in, Value* out);
};

// The arguments are copied to the arena.
Value NewGenerator(Interpreter& in, GeneratorKind kind, Value source,
                   const CallArguments& arguments);

// All items, as a list in the arena.
Value ListOf(Interpreter& in, Value iterable);

// The `loop` variable.
struct Loop {
  Value iterable;
  Iterator iterator;
  bool has_length = false;
  int64_t length = 0;
  int64_t index0 = -1;
  int64_t depth0 = 0;
  bool has_after = false;
  Value after;  // looked ahead
  bool after_is_end = false;
  Value current, before;
  Value last_changed;
  const ForStmt* stmt = nullptr;    // of a recursive loop
  void* frame = nullptr;            // of the code around a recursive loop
  const ForStmt* filter = nullptr;  // the loop's own `if`

  bool Next(Interpreter& in, Value* out);
  bool Peek(Interpreter& in);  // false at the end
  int64_t Length(Interpreter& in);

 private:
  bool Advance(Interpreter& in, Value* out);
};

}  // namespace portico::jinja
