#include "template/builtin/filters.h"

#include <unordered_map>

#include "template/run/interpreter.h"

namespace portico::jinja {

FilterFunction FindFilter(std::string_view name) {
  static const auto* const kTable = [] {
    auto* table = new std::unordered_map<std::string_view, FilterFunction>();
    for (auto filters : {TextFilters(), SequenceFilters(), ValueFilters()}) {
      for (const NamedFilter& filter : filters) table->emplace(filter.name, filter.function);
    }
    return table;
  }();
  auto it = kTable->find(name);
  return it == kTable->end() ? nullptr : it->second;
}

Value Interpreter::ApplyFilter(Value name, Value object, const CallArguments& arguments) {
  FilterFunction filter = name.is_string() ? FindFilter(name.str()) : nullptr;
  if (filter == nullptr) {
    std::string text;
    AppendRepr(*this, name, &text);
    Fail("No filter named ", text, ".");
  }
  return filter(*this, object, arguments);
}

}  // namespace portico::jinja
