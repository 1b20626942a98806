// Where Portico keeps what it can make again.
#pragma once

#include <string>

#include "base/status.h"

namespace portico {

// $PORTICO_CACHE_DIR, else $XDG_CACHE_HOME/portico, else ~/.cache/portico; a relative path is ignored, as the XDG
// specification wants it. The folder need not exist yet. FAILED_PRECONDITION where none of these is set.
StatusOr<std::string> CacheFolder();

}  // namespace portico
