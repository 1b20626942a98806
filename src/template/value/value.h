// Python values as templates see them: 16 bytes, trivially copyable, owning nothing. What they point to lives in the
// caller's context, in the parsed program or in the render's arena. Everything but a namespace, a loop, a cycler, a
// joiner and a generator is immutable.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/json.h"

namespace portico::jinja {

enum class Kind : uint8_t {
  kMissing,    // an unset variable; never seen by operations
  kUndefined,  // Jinja's Undefined
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kJsonList,  // a list of the context, not converted
  kJsonDict,  // a dict of the context, not converted
  kDictView,  // keys(), values() or items()
  kRange,
  kGenerator,
  kNamespace,
  kMacro,
  kLoop,
  kMethod,    // bound to a value
  kFunction,  // a global
  kCycler,
  kJoiner,
  kSelf,   // `self` of templates with blocks
  kBlock,  // self.name
};

struct Value;
struct Dict;
using BigInt = BigInteger;
struct Generator;
struct Macro;
struct Loop;
struct BoundMethod;
struct Cycler;
struct Joiner;
struct Block;

struct Items {
  const Value* data;
  size_t size;
};

struct Range {
  int64_t start, step, count;
  int64_t stop;  // as it was given
};

// Why a value is undefined, for the message when it is used.
struct UndefinedReason;

enum UndefinedFlags : uint8_t {
  kUndefinedName,    // payload: const std::string_view*, the variable's name
  kUndefinedMember,  // payload: const std::string_view*, the attribute; size: the object's Kind
  kUndefinedReason,  // payload: const UndefinedReason*
};

inline constexpr uint8_t kMarkup = 1;  // flag of strings: text marked as safe HTML

enum ViewFlags : uint8_t { kKeysView, kValuesView, kItemsView };

struct Value {
  Kind kind = Kind::kMissing;
  uint8_t flags = 0;
  uint16_t unused = 0;
  uint32_t size = 0;  // bytes of a string
  union {
    int64_t i;
    bool b;
    double d;
    const char* s;
    const Items* items;
    const JsonArray* json_list;
    const JsonObject* json_dict;
    Dict* dict;  // also of a namespace
    const Value* viewed;
    const BigInt* big;
    const Range* range;
    Generator* generator;
    const Macro* macro;
    Loop* loop;
    const BoundMethod* method;
    Cycler* cycler;
    Joiner* joiner;
    const Block* block;
    const std::string_view* name;
    const UndefinedReason* reason;
  };

  constexpr Value() : i(0) {}
  static constexpr Value None() { return Value(Kind::kNone); }
  static constexpr Value Bool(bool value) {
    Value v(Kind::kBool);
    v.b = value;
    return v;
  }
  static constexpr Value Int(int64_t value) {
    Value v(Kind::kInt);
    v.i = value;
    return v;
  }
  static constexpr Value Float(double value) {
    Value v(Kind::kFloat);
    v.d = value;
    return v;
  }
  // The text must live as long as the value and be shorter than 4 GiB.
  static constexpr Value String(std::string_view text, uint8_t flags = 0) {
    Value v(Kind::kString);
    v.flags = flags;
    v.size = static_cast<uint32_t>(text.size());
    v.s = text.data();
    return v;
  }
  static Value Of(Kind kind, const Items* items) {
    Value v(kind);
    v.items = items;
    return v;
  }
  static Value Of(Dict* dict, Kind kind = Kind::kDict) {
    Value v(kind);
    v.dict = dict;
    return v;
  }
  static Value UndefinedName(const std::string_view* name) {
    Value v(Kind::kUndefined);
    v.flags = kUndefinedName;
    v.name = name;
    return v;
  }
  explicit constexpr Value(Kind k) : kind(k), i(0) {}

  bool is(Kind k) const { return kind == k; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_undefined() const { return kind == Kind::kUndefined; }
  bool is_none() const { return kind == Kind::kNone; }
  bool is_markup() const { return is_string() && (flags & kMarkup) != 0; }
  // bool or int that fits 64 bits
  bool is_small_int() const { return kind == Kind::kInt || kind == Kind::kBool; }
  bool is_sequence() const {
    return kind == Kind::kList || kind == Kind::kTuple || kind == Kind::kJsonList;
  }
  bool is_list() const { return kind == Kind::kList || kind == Kind::kJsonList; }
  bool is_dict() const { return kind == Kind::kDict || kind == Kind::kJsonDict; }
  bool is_number() const { return kind >= Kind::kBool && kind <= Kind::kFloat; }

  int64_t small_int() const { return kind == Kind::kBool ? (b ? 1 : 0) : i; }
  std::string_view str() const { return {s, size}; }
};
static_assert(sizeof(Value) == 16);

// A value of the context; strings and containers are borrowed.
inline Value FromJson(const Json& json) {
  if (json.is_string()) return Value::String(json.as_string());
  if (json.is_object()) {
    Value v(Kind::kJsonDict);
    v.json_dict = &json.as_object();
    return v;
  }
  if (json.is_array()) {
    Value v(Kind::kJsonList);
    v.json_list = &json.as_array();
    return v;
  }
  if (json.is_int()) return Value::Int(json.as_int());
  if (json.is_bool()) return Value::Bool(json.as_bool());
  if (json.is_double()) return Value::Float(json.as_double());
  if (json.is_big_int()) {
    Value v(Kind::kBigInt);
    v.big = &json.as_big_int().value();
    return v;
  }
  return Value::None();
}

// Items of a list or tuple of any kind.
inline size_t SequenceSize(Value v) {
  return v.is(Kind::kJsonList) ? v.json_list->size() : v.items->size;
}
inline Value SequenceItem(Value v, size_t index) {
  return v.is(Kind::kJsonList) ? FromJson((*v.json_list)[index]) : v.items->data[index];
}

struct DictEntry {
  Value key;
  Value value;
  uint64_t hash;
};

// Insertion order; an index by hash from 9 entries on. Grows in the render's arena (dict.h).
struct Dict {
  DictEntry* entries = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
  uint32_t* buckets = nullptr;  // entry number + 1, 0 for none; open addressing
  uint32_t bucket_mask = 0;
};

struct UndefinedReason {
  std::string_view hint = {};  // whole message, or empty
  Value name = {};
  Value object = {};
  bool has_object = false;
};

struct Cycler {
  const Items* items;
  size_t position;
};

struct Joiner {
  Value separator;
  bool used;
};

}  // namespace portico::jinja
