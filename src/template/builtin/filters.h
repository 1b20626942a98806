// Jinja's filters by name.
#pragma once

#include <string_view>

#include "template/syntax/nodes.h"

namespace portico::jinja {

// Null where there is none of that name.
FilterFunction FindFilter(std::string_view name);

// One table a file.
struct NamedFilter {
  std::string_view name;
  FilterFunction function;
};
std::span<const NamedFilter> TextFilters();
std::span<const NamedFilter> SequenceFilters();
std::span<const NamedFilter> ValueFilters();

}  // namespace portico::jinja
