// What takes little time to copy and to send.
#pragma once

#include <cstddef>

#include "pipeline/request.h"

namespace portico::pipeline {

// Copied in some microseconds.
inline constexpr size_t kShortBytes = 64 << 10;

// What a stage's process is told of the request, but for its parts, is about as short. Looks at no more than that.
bool IsShort(const Request& request);

}  // namespace portico::pipeline
