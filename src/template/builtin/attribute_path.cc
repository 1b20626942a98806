#include "template/builtin/attribute_path.h"

#include <algorithm>
#include <string>

#include "template/run/interpreter.h"
#include "template/value/unicode.h"

namespace portico::jinja {

Value ReadPath(Interpreter& in, Value item, Value attribute, Value fallback) {
  if (attribute.is_none()) return item;
  auto step = [&](Value part) {
    item = in.GetItem(item, part);
    if (item.is_undefined() && !fallback.is_none()) item = fallback;
  };
  if (!attribute.is_string()) {
    step(attribute);
    return item;
  }
  std::string_view path = attribute.str();
  while (true) {
    size_t dot = path.find('.');
    std::string_view part = path.substr(0, dot);
    const bool digits =
        !part.empty() && part.size() < 18 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    step(digits ? Value::Int(std::stoll(std::string(part))) : Value::String(part));
    if (dot == std::string_view::npos) return item;
    path.remove_prefix(dot + 1);
  }
}

Value IgnoreCase(Interpreter& in, Value v) {
  return v.is_string() ? in.NewString(Lower(v.str()), v.flags) : v;
}

}  // namespace portico::jinja
