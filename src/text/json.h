// JSON as a value: for what a client may fill freely (template variables, tool schemas, metadata) and for files.
// Requests of fixed shape are read straight from simdjson, and answers are appended with JsonWriter
// (text/json_writer.h); neither builds this tree on a hot path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "text/big_integer.h"

namespace portico {

class Json;
using JsonArray = std::vector<Json>;
// Members in the order of the text, as Python's dict keeps them: templates print in that order.
using JsonObject = std::vector<std::pair<std::string, Json>>;

// An immutable-by-convention value; copying is deep. Strings are valid UTF-8 where they come from Parse().
class Json {
 public:
  struct Limits {
    size_t max_depth = 128;  // nesting; deeper text is an error
  };

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(static_cast<int64_t>(value)) {}
  Json(int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::shared_ptr<const JsonBigInteger> value) : value_(std::move(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(JsonArray value) : value_(std::move(value)) {}
  Json(JsonObject value) : value_(std::move(value)) {}

  // The value of a whole JSON text (strict: RFC 8259, no NaN, fractions within double range, integers of at most
  // JsonBigInteger::kMaxDigits, valid UTF-8, nothing behind the value). Of doubled keys the last one wins, in the first
  // one's place, as in Python.
  static StatusOr<Json> Parse(std::string_view text, const Limits& limits);
  static StatusOr<Json> Parse(std::string_view text) { return Parse(text, Limits{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  // An integer beyond int64: a number, but no is_int().
  bool is_big_int() const { return std::holds_alternative<BigIntegerPtr>(value_); }
  bool is_number() const { return is_int() || is_double() || is_big_int(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<JsonArray>(value_); }
  bool is_object() const { return std::holds_alternative<JsonObject>(value_); }

  // The caller has checked the type.
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_int() const { return std::get<int64_t>(value_); }
  // Lives as long as any copy of this value.
  const JsonBigInteger& as_big_int() const { return *std::get<BigIntegerPtr>(value_); }
  double as_double() const {
    if (is_int()) return static_cast<double>(as_int());
    return is_big_int() ? as_big_int().ToDouble() : std::get<double>(value_);
  }
  const std::string& as_string() const { return std::get<std::string>(value_); }
  std::string& as_string() { return std::get<std::string>(value_); }
  const JsonArray& as_array() const { return std::get<JsonArray>(value_); }
  JsonArray& as_array() { return std::get<JsonArray>(value_); }
  const JsonObject& as_object() const { return std::get<JsonObject>(value_); }
  JsonObject& as_object() { return std::get<JsonObject>(value_); }

  // The member, or null if this is no object or has none of that name.
  const Json* Find(std::string_view key) const;
  Json* Find(std::string_view key);
  // Replaces the member or appends it. This must be an object.
  void Set(std::string_view key, Json value);

  // Member as text or number, or the fallback where it is absent or of another type.
  std::string GetString(std::string_view key, std::string_view fallback = {}) const;
  int64_t GetInt(std::string_view key, int64_t fallback) const;
  double GetDouble(std::string_view key, double fallback) const;
  bool GetBool(std::string_view key, bool fallback) const;

  // Compact JSON text, UTF-8 unescaped.
  std::string Dump() const;
  void DumpTo(std::string* out) const;

  friend bool operator==(const Json& a, const Json& b) {
    if (a.is_big_int() && b.is_big_int()) return a.as_big_int().text() == b.as_big_int().text();
    return a.value_ == b.value_;
  }

 private:
  using BigIntegerPtr = std::shared_ptr<const JsonBigInteger>;

  std::variant<std::monostate, bool, int64_t, double, std::string, JsonArray, JsonObject,
               BigIntegerPtr>
      value_;
};

}  // namespace portico
