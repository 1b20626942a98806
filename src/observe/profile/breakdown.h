// What the events of a profile add up to: time in stages, time between them, steps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/profile/profile_files.h"

namespace portico::observe {

struct Durations {
  uint64_t count = 0;
  double total_ms = 0;
  double avg_ms = 0;
  double p50_ms = 0;  // interpolated between the two nearest
  double p95_ms = 0;
  double max_ms = 0;
};

struct StageRow {
  std::string stage;
  std::string interval;         // "stage_input_received->stage_complete"
  bool of_sglang_omni = false;  // its report has this interval, too
  Durations durations;
};

struct HopRow {
  std::string from;
  std::string to;
  std::string kind;  // payload, stream_chunk; entry: from the coordinator to the first stage;
                     // request and first_byte: between a gateway and a worker's server
  bool of_sglang_omni = false;
  Durations durations;
};

struct StepRow {
  std::string stage;
  std::string name;
  double batch = 0;  // on average
  Durations durations;
};

// A stretch of one request in one stage.
struct Interval {
  uint32_t request = 0;
  uint32_t stage = 0;
  uint32_t kind = 0;  // its place in IntervalName()
  int32_t process = 0;
  int64_t begin = 0;
  int64_t end = 0;
};
const char* IntervalBegin(uint32_t kind);
const char* IntervalEnd(uint32_t kind);

// Between two stages.
struct Hop {
  uint32_t request = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint8_t kind = 0;  // as HopRow names it
  int32_t from_process = 0;
  int32_t to_process = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// The events of each request, by time: places in Profile::events. In the order of their first ones.
struct Timeline {
  uint32_t request = 0;
  std::vector<uint32_t> events;
  int64_t begin = 0;
  int64_t end = 0;
};

struct Breakdown {
  std::vector<Timeline> timelines;
  std::vector<Interval> intervals;
  std::vector<Hop> hops;
  std::vector<StageRow> stages;  // most time first, as the others
  std::vector<HopRow> hop_rows;
  std::vector<StepRow> steps;
};

// Begins and ends are paired in their order within a request, stage and pair, as sglang-omni's
// report does it.
Breakdown BreakDown(const Profile& profile);

}  // namespace portico::observe
