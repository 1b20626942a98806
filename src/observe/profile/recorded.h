// What processes have recorded and made no lines of: they were killed, or are still running.
#pragma once

#include <cstdint>

#include "base/events/record_reader.h"
#include "base/status.h"
#include "observe/profile/profile_files.h"

namespace portico::observe {

// Adds the events of which the profile has no lines: some are there where the process was killed, or
// is, while it writes them. `process`: its place in profile->processes. RESOURCE_EXHAUSTED: they are
// too many; UNAVAILABLE: the file cannot be read.
Status AddRecorded(const events::internal::RecordsInput& records,
                   const events::internal::RecordsFacts& facts, int32_t process, Profile* profile);

Status TooManyEvents();

}  // namespace portico::observe
