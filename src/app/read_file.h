// Files that a person names on the command line.
#pragma once

#include <string>

#include "base/status.h"

namespace portico {

// NOT_FOUND "cannot read PATH: why"; `error` is an errno, 0 where there is none.
Status CannotRead(const std::string& path, int error);

// The whole of a file. CannotRead() where it cannot be opened or read (a folder, say).
StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace portico
