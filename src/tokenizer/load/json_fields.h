// Fields of the parts of tokenizer.json, with the reference's verdict on those that are missing or of a wrong type.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/json.h"

namespace portico::tokenizer {

inline Status FieldError(const Json& json, std::string_view key, std::string_view wanted) {
  return Error(StatusCode::kInvalidArgument, json.GetString("type", "the object") + " needs '" +
                                                 std::string(key) + "' to be " +
                                                 std::string(wanted));
}

inline StatusOr<bool> BoolField(const Json& json, std::string_view key,
                                std::optional<bool> fallback = std::nullopt) {
  const Json* value = json.Find(key);
  if (value == nullptr && fallback.has_value()) return *fallback;
  if (value == nullptr || !value->is_bool()) return FieldError(json, key, "true or false");
  return value->as_bool();
}

// The fallback where the field is missing or null.
inline StatusOr<bool> OptionalBoolField(const Json& json, std::string_view key, bool fallback) {
  const Json* value = json.Find(key);
  return value != nullptr && value->is_null() ? fallback : BoolField(json, key, fallback);
}

inline StatusOr<std::string> StringField(const Json& json, std::string_view key) {
  const Json* value = json.Find(key);
  if (value == nullptr || !value->is_string()) return FieldError(json, key, "a string");
  return value->as_string();
}

inline StatusOr<int64_t> CountField(const Json& json, std::string_view key) {
  const Json* value = json.Find(key);
  if (value == nullptr || !value->is_int() || value->as_int() < 0) {
    return FieldError(json, key, "a number that is not negative");
  }
  return value->as_int();
}

}  // namespace portico::tokenizer
