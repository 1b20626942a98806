// Profiles as operators ask for them: what a body says, and what this process makes of it.
//
// run_id, event_dir, trace_path_template and enable_torch start this process' recorder
// (base/events/recorder.h); SGLang's fields (output_dir, num_steps, activities …) are the engine's.
// Both may stand in one body. Where a body names neither, the recorder is meant. Paths lie below
// one folder, whatever a body says.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/events/recorder.h"
#include "base/metrics.h"
#include "base/status.h"
#include "engine/control.h"
#include "text/json.h"

namespace portico {

struct ProfileOptions {
  // Made if it is not there. Empty: $SGLANG_TORCH_PROFILER_DIR, else "profiles" in the cache folder.
  std::string directory = {};
  int64_t max_bytes = int64_t{256} << 20;  // of a process in a run
  std::string stage = "frontend";          // this process in the files' names
};

// What the process does with profiles; set once, before it serves. INVALID_ARGUMENT (field
// "profile-dir") if nothing can be written to the folder that is named.
Status SetProfileOptions(ProfileOptions options, Registry* registry);

struct ProfileRequest {
  std::optional<events::RunOptions> recorder;
  bool enable_torch = true;                   // with `recorder`: engines that have a profiler too
  std::optional<StartProfileControl> engine;  // asked for by its own fields
};

// Of /start_profile; with `events_only` of /start_request_profile. An empty body is an empty object.
// INVALID_ARGUMENT names the field: unknown ones, other types, paths that are not below the folder. A
// run that the body does not name gets a name, and a folder of it, that no other run has: the folder
// is made here.
StatusOr<ProfileRequest> ReadProfileStart(std::string_view body, bool events_only);

// The run to stop; empty: any. INVALID_ARGUMENT names an unknown field.
StatusOr<std::string> ReadProfileStop(std::string_view body);

// Whether this process has started a profile of its engines that has not been stopped.
std::atomic<bool>& EnginesAreProfiled();

// What a start answers.
std::string ProfileAnswer(const events::RunOptions& run, bool events_only, bool enable_torch);

}  // namespace portico
