// The files of a profile, of Portico's recorder or of sglang-omni's: read, and brought into one
// order of time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"

namespace portico::observe {

// Words that come again and again, as numbers; 0 is "".
class Words {
 public:
  uint32_t Of(std::string_view word);
  const std::string& At(uint32_t id) const { return words_[id]; }
  // 0: it is not known.
  uint32_t Find(std::string_view word) const;

 private:
  std::deque<std::string> words_ = {""};
  absl::flat_hash_map<std::string_view, uint32_t> ids_;
};

struct ProfileEvent {
  int64_t nanoseconds = 0;  // wall clock
  uint32_t request = 0;
  uint32_t stage = 0;
  uint32_t name = 0;
  uint32_t peer = 0;  // from_stage, to_stage, entry_stage or next
  uint32_t modality = 0;
  uint32_t what = 0;    // the name of `number`: tokens, body_bytes, status …
  int32_t process = 0;  // its place in Profile::processes
  int64_t chunk = -1;   // chunk_id
  int64_t number = -1;  // the other number, or a flag as 0 or 1
};

// What a thread did for many requests.
struct ProfileStep {
  int64_t nanoseconds = 0;  // its end
  int64_t took = 0;
  int64_t batch = 0;
  uint32_t stage = 0;
  uint32_t name = 0;
  int32_t process = 0;
};

struct ProfileProcess {
  std::string stage;  // as in its files' names
  int64_t pid = 0;
  // Of run_*.json; empty and 0 where there is none.
  std::string host;
  std::string boot_id;
  int64_t monotonic_to_wall = 0;
  bool ended = false;
  uint64_t dropped = 0;
  uint64_t cut = 0;
  uint64_t events = 0;
  int64_t shifted = 0;  // nanoseconds that were added to its times
};

struct Profile {
  std::string run_id;
  Words words;
  std::vector<ProfileEvent> events;  // by time
  std::vector<ProfileStep> steps;    // by time
  std::vector<ProfileProcess> processes;
  std::vector<std::string> torch_traces;  // paths
  uint64_t malformed = 0;                 // lines that were skipped
  bool ran = false;                       // there is a run_*.json
};

// Each path: a folder with events_*.jsonl, or with a folder `events` that has them, or one such
// file; also records_*.bin, which a process leaves that was killed. Torch
// traces (*.trace.json, *.trace.json.gz, *.pt.trace.json[.gz]) are looked for beside and above
// within the run's folder. A line that cannot be read is skipped and counted: a process may have
// died writing it. NOT_FOUND: there are no events; RESOURCE_EXHAUSTED: there are more than
// kMaxEvents.
StatusOr<Profile> ReadProfile(const std::vector<std::string>& paths);

inline constexpr size_t kMaxEvents = 8'000'000;

// Whether every process of the folder says that its run has ended.
bool AllEnded(const std::string& folder);

// The text of a file, unpacked where it is gzip. RESOURCE_EXHAUSTED: it is longer.
StatusOr<std::string> ReadMaybePacked(const std::string& path, size_t max_bytes);

}  // namespace portico::observe
