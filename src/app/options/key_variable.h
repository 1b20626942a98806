#pragma once

#include <string>

#include "base/status.h"

namespace portico {

// Reads PORTICO_API_KEY into `key` where neither the command line nor the file has set one. INVALID_ARGUMENT if it is set but
// empty, which would open the server, or no text of a header.
Status TakeKeyVariable(std::string* key);

}  // namespace portico
