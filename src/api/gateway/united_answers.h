// One answer for many: what a control or a reading that all workers have answered comes to as a whole.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/json_writer.h"

namespace portico::api {

// Adds to the object that is being written what the workers' answers, each that of a 200, come to: of vLLM's
// /is_paused and /is_sleeping (true if each says so), /get_world_size (the sum), /weight_info (what all say, else null)
// and /weight_checker (`match`: true if it is so of each that says it). Nothing for other paths.
void WriteUnited(std::string_view path, const std::vector<std::string_view>& answers,
                 JsonWriter* writer);

// What sglang-router and smg say of a /flush_cache that `done` of `all` workers have done.
void WriteFlushed(int64_t done, int64_t all, JsonWriter* writer);

}  // namespace portico::api
