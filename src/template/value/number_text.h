// int() and float() of text, as Python reads it.
#pragma once

#include <cstdint>
#include <string_view>

#include "template/value/arena.h"
#include "template/value/value.h"

namespace portico::jinja {

// False where Python raises ValueError. `base` is 0 or 2-36.
bool ParseInt(std::string_view text, int64_t base, Arena* arena, Value* out);
bool ParseFloat(std::string_view text, double* out);

}  // namespace portico::jinja
