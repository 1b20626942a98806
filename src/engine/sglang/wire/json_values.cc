#include "engine/sglang/wire/json_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"

namespace portico::sglang {
namespace {

bool Suits(const Type& type, const Json& json) {
  switch (type.kind) {
    case Type::Kind::kNil:
      return json.is_null();
    case Type::Kind::kBool:
      return json.is_bool();
    case Type::Kind::kInt:
      return json.is_int();
    case Type::Kind::kFloat:
      return json.is_number();
    case Type::Kind::kStr:
    case Type::Kind::kBin:
      return json.is_string();
    case Type::Kind::kAny:
      return true;
    case Type::Kind::kBuffer:
      return false;
    case Type::Kind::kList:
    case Type::Kind::kTuple:
      return json.is_array();
    case Type::Kind::kMap:
      return json.is_object();
    case Type::Kind::kStruct:
      return json.is_object();
    case Type::Kind::kEnum:
    case Type::Kind::kLiteral:
      return json.is_string() || json.is_int();
    case Type::Kind::kUnion:
      return std::any_of(type.parts.begin(), type.parts.end(),
                         [&](const Type& part) { return Suits(part, json); });
  }
  return false;
}

StatusOr<Value> FreeValue(const Json& json) {
  if (json.is_null()) return Value();
  if (json.is_bool()) return Value(json.as_bool());
  if (json.is_int()) return Value(json.as_int());
  if (json.is_string()) return Value(json.as_string());
  if (json.is_number()) return Value(json.as_double());
  if (json.is_array()) {
    List list;
    for (const Json& each : json.as_array()) {
      PORTICO_ASSIGN_OR_RETURN(Value value, FreeValue(each));
      list.push_back(std::move(value));
    }
    return Value(std::move(list));
  }
  Map map;
  for (const auto& [key, each] : json.as_object()) {
    PORTICO_ASSIGN_OR_RETURN(Value value, FreeValue(each));
    map.emplace_back(key, std::move(value));
  }
  return Value(std::move(map));
}

StatusOr<Value> StructOfJson(const StructLayout& layout, const Json& json, std::string_view field) {
  Map map;
  for (const auto& [key, each] : json.as_object()) {
    const Field* member = layout.Find(key);
    if (member == nullptr) {
      return InvalidArgument(field, fmt::format("{} has no member {:.60}", field, key));
    }
    PORTICO_ASSIGN_OR_RETURN(Value value,
                             ValueOfJson(member->type, each, fmt::format("{}.{}", field, key)));
    map.emplace_back(key, std::move(value));
  }
  return Value(std::move(map));
}

template <typename T>
void AppendNumbers(std::string_view bytes, JsonArray* out) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      out->emplace_back(static_cast<double>(value));
    } else {
      out->emplace_back(static_cast<int64_t>(value));
    }
  }
}

Json JsonOfBuffer(const Buffer& buffer) {
  JsonArray numbers;
  if (buffer.dtype == "q" || buffer.dtype == "<i8" || buffer.dtype == "int64") {
    AppendNumbers<int64_t>(buffer.bytes, &numbers);
  } else if (buffer.dtype == "i" || buffer.dtype == "<i4" || buffer.dtype == "int32") {
    AppendNumbers<int32_t>(buffer.bytes, &numbers);
  } else if (buffer.dtype == "f" || buffer.dtype == "<f4" || buffer.dtype == "float32") {
    AppendNumbers<float>(buffer.bytes, &numbers);
  } else if (buffer.dtype == "d" || buffer.dtype == "<f8" || buffer.dtype == "float64") {
    AppendNumbers<double>(buffer.bytes, &numbers);
  } else {
    return Json(absl::Base64Escape(buffer.bytes));
  }
  return Json(std::move(numbers));
}

}  // namespace

StatusOr<Value> ValueOfJson(const Type& type, const Json& json, std::string_view field) {
  if (type.kind == Type::Kind::kUnion) {
    const Type* found = nullptr;
    for (const Type& part : type.parts) {
      if (Suits(part, json) && (found == nullptr || part.kind == Type::Kind::kInt)) found = &part;
    }
    if (found != nullptr) return ValueOfJson(*found, json, field);
  } else if (Suits(type, json)) {
    switch (type.kind) {
      case Type::Kind::kFloat:
        return Value(json.as_double());
      case Type::Kind::kBin: {
        std::string bytes;
        if (!absl::Base64Unescape(json.as_string(), &bytes)) {
          return InvalidArgument(field, fmt::format("{} must be Base64", field));
        }
        return Value(Bytes{std::move(bytes)});
      }
      case Type::Kind::kList: {
        List list;
        for (const Json& each : json.as_array()) {
          PORTICO_ASSIGN_OR_RETURN(Value value, ValueOfJson(type.parts[0], each, field));
          list.push_back(std::move(value));
        }
        return Value(std::move(list));
      }
      case Type::Kind::kMap: {
        Map map;
        for (const auto& [key, each] : json.as_object()) {
          PORTICO_ASSIGN_OR_RETURN(Value value, ValueOfJson(type.parts[1], each, field));
          map.emplace_back(key, std::move(value));
        }
        return Value(std::move(map));
      }
      case Type::Kind::kStruct:
        return StructOfJson(*type.layout, json, field);
      default:
        return FreeValue(json);
    }
  }
  return InvalidArgument(field, fmt::format("{} has another type in SGLang", field));
}

StatusOr<Map> FieldsOfJson(const StructLayout& layout, const Json& object) {
  Map fields;
  for (const auto& [name, value] : object.as_object()) {
    const Field* field = layout.Find(name);
    if (field == nullptr || name == "rid" || name == "http_worker_ipc") {
      return InvalidArgument(name, fmt::format("{:.64} is not a field of this call", name));
    }
    PORTICO_ASSIGN_OR_RETURN(Value typed, ValueOfJson(field->type, value, name));
    fields.emplace_back(name, std::move(typed));
  }
  return fields;
}

Json JsonOfValue(const Value& value) {
  if (const auto* flag = value.As<bool>()) return Json(*flag);
  if (const auto* integer = value.As<int64_t>()) return Json(*integer);
  if (const auto* large = value.As<uint64_t>()) return Json(static_cast<double>(*large));
  if (const auto* number = value.As<double>()) {
    return std::isfinite(*number) ? Json(*number) : Json();
  }
  if (const auto* text = value.As<std::string>()) return Json(*text);
  if (const auto* bytes = value.As<Bytes>()) return Json(absl::Base64Escape(bytes->bytes));
  if (const auto* buffer = value.As<Buffer>()) return JsonOfBuffer(*buffer);
  if (const auto* list = value.As<List>()) {
    JsonArray array;
    for (const Value& each : *list) array.push_back(JsonOfValue(each));
    return Json(std::move(array));
  }
  if (const auto* map = value.As<Map>()) {
    JsonObject object;
    for (const auto& [key, each] : *map) {
      const auto* name = key.As<std::string>();
      object.emplace_back(name != nullptr ? *name : JsonOfValue(key).Dump(), JsonOfValue(each));
    }
    return Json(std::move(object));
  }
  return Json();
}

}  // namespace portico::sglang
