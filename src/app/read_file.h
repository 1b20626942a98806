// Files that a person names on the command line.
#pragma once

#include <string>

#include "base/status.h"

namespace portico {

// The whole of a file. NOT_FOUND where it cannot be opened or read (a folder, say).
StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace portico
