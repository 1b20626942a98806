// What some clients put before a body to say how its characters are encoded.
#pragma once

#include <string>

#include "base/status.h"

namespace portico {

// Takes UTF-8's mark off its start. INVALID_ARGUMENT, without a field, for the mark of UTF-16 or UTF-32: then the body
// stays as it is.
Status DropByteOrderMark(std::string* body);

}  // namespace portico
