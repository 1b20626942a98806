// A profile as text and as JSON.
#pragma once

#include <string>

#include "observe/profile/breakdown.h"
#include "observe/profile/profile_files.h"

namespace portico::observe {

// Processes, stages, hops, steps, and the timelines of the `requests` slowest requests.
std::string TextReport(const Profile& profile, const Breakdown& breakdown, size_t requests);

// What sglang-omni's report gives (timelines, stage_breakdown, hop_breakdown, request_count), and
// under "portico" what it has not: other intervals, other hops, steps, processes.
std::string JsonReport(const Profile& profile, const Breakdown& breakdown);

}  // namespace portico::observe
