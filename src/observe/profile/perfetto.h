// A profile in the trace-event format that Perfetto (ui.perfetto.dev) and chrome://tracing read.
#pragma once

#include <string>
#include <vector>

#include "observe/profile/breakdown.h"
#include "observe/profile/profile_files.h"

namespace portico::observe {

// Intervals are asynchronous slices, one track a request in each process; other events are instants
// on it; hops are arrows; steps are slices of a track a stage. The torch traces that can be read are
// joined: their times are the wall clock's. `left_out` gets a line for each that is not.
std::string PerfettoTrace(const Profile& profile, const Breakdown& breakdown,
                          std::vector<std::string>* left_out);

// Of one torch trace, unpacked.
inline constexpr size_t kMaxTorchBytes = 128 << 20;

}  // namespace portico::observe
