// Jinja's tests (`x is …`) by name.
#pragma once

#include <string_view>

#include "template/syntax/nodes.h"

namespace portico::jinja {

// Null where there is none of that name.
TestFunction FindTest(std::string_view name);

}  // namespace portico::jinja
