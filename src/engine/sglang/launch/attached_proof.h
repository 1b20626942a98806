// What must be so before a launcher that runs already is joined.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace portico::sglang {

// When the process was started, in the kernel's ticks since it booted: with the id it names one process, not a later one
// of that id. NOT_FOUND: there is none.
StatusOr<int64_t> ProcessStart(pid_t pid);

// Has the launcher at this Unix socket read what ProofLine() encoded (python/portico/sglang_attach.py). Blocks for 30
// seconds at most. UNIMPLEMENTED: it reads something else; UNAVAILABLE: there is no answer.
Status ProveAttached(const std::string& address, const std::string& line);

}  // namespace portico::sglang
