// A value of SGLang's scheduler wire that has no type of its own here: what a control message carries, and what tests
// compare. Requests and token outputs do not pass through it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace portico::sglang {

struct Bytes {
  std::string bytes;
  bool operator==(const Bytes&) const = default;
};

// A Python array, a torch tensor or a numpy array.
struct Buffer {
  enum class Kind : uint8_t { kArray, kTensor, kNdarray };
  Kind kind = Kind::kArray;
  std::string dtype;           // array: the typecode; tensor: "float32"; ndarray: "<i4"
  std::vector<int64_t> shape;  // empty for arrays
  std::string device;          // tensors
  std::string bytes;           // as in memory
  bool operator==(const Buffer&) const = default;
};

// An extension that Portico has no use for.
struct Extension {
  int8_t code = 0;
  std::string bytes;
  bool operator==(const Extension&) const = default;
};

struct Value;
using List = std::vector<Value>;
// In the order of the wire. A struct is one too, its keys being the names of its fields.
using Map = std::vector<std::pair<Value, Value>>;

struct Value {
  // An integer above INT64_MAX is uint64_t, every other int64_t.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Bytes, Buffer,
               Extension, List, Map>
      of;

  Value() = default;
  Value(bool value) : of(value) {}
  Value(int value) : of(int64_t{value}) {}
  Value(int64_t value) : of(value) {}
  Value(uint64_t value);
  Value(double value) : of(value) {}
  Value(const char* value) : of(std::string(value)) {}
  Value(std::string_view value) : of(std::string(value)) {}
  Value(std::string value) : of(std::move(value)) {}
  Value(Bytes value) : of(std::move(value)) {}
  Value(Buffer value) : of(std::move(value)) {}
  Value(Extension value) : of(std::move(value)) {}
  Value(List value) : of(std::move(value)) {}
  Value(Map value) : of(std::move(value)) {}

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&of);
  }
  bool is_nil() const { return std::holds_alternative<std::monostate>(of); }
  bool is_int() const { return As<int64_t>() != nullptr || As<uint64_t>() != nullptr; }
  // The member of that name, or null if this is no map or has none.
  const Value* Find(std::string_view key) const;
  Value* Find(std::string_view key);

  // NaN equals NaN, and a number is not equal to one of another type.
  friend bool operator==(const Value& a, const Value& b);
};

// "int", "list", … for messages.
std::string_view KindName(const Value& value);

}  // namespace portico::sglang
