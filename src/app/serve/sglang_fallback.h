// `portico serve --engine sglang --sglang-fallback http` before an SGLang whose scheduler's messages Portico does not
// know: SGLang's own server on a port of this machine, and Portico's gateway in front of it.
#pragma once

#include <signal.h>

#include <string_view>

#include "app/options/options.h"
#include "base/status.h"

namespace portico {

// Whether `status`, why the only model could not be loaded, is one that these options answer with the fallback.
bool FallsBack(const ServeOptions& options, const Status& status);

// Serves until SIGINT or SIGTERM, then drains, and ends SGLang. `why` stands in the log and in /get_server_info. Errors
// are sentences: an option that the gateway cannot honour, a program that cannot be started, or one that dies again and
// again.
Status ServeSglangOverHttp(const ServeOptions& options, std::string_view why,
                           const sigset_t& signals);

}  // namespace portico
