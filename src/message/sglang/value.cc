#include "message/sglang/value.h"

#include <cmath>

namespace portico::sglang {

Value::Value(uint64_t value) {
  if (value <= INT64_MAX) {
    of = static_cast<int64_t>(value);
  } else {
    of = value;
  }
}

const Value* Value::Find(std::string_view key) const {
  const Map* map = As<Map>();
  if (map == nullptr) return nullptr;
  for (const auto& [name, value] : *map) {
    const auto* text = name.As<std::string>();
    if (text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

Value* Value::Find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).Find(key));
}

bool operator==(const Value& a, const Value& b) {
  const auto* x = a.As<double>();
  const auto* y = b.As<double>();
  if (x != nullptr && y != nullptr && std::isnan(*x) && std::isnan(*y)) return true;
  return a.of == b.of;
}

std::string_view KindName(const Value& value) {
  constexpr std::string_view kNames[] = {"nil",   "bool",   "int",       "int",  "float", "str",
                                         "bytes", "buffer", "extension", "list", "map"};
  return kNames[value.of.index()];
}

}  // namespace portico::sglang
