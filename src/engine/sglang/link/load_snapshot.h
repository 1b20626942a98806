// The load that SGLang's schedulers publish in shared memory, a slot a data-parallel rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portico::sglang {

struct RankLoad {
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t retracted = 0;
  int64_t used_tokens = 0;
  int64_t max_total_tokens = 0;
  double tokens_per_second = -1;  // negative: unknown
  double cache_hit_rate = -1;
  bool known = false;  // false: it has published nothing, or is publishing now
};

// One a rank, in their order.
// Layout: "SLNS", u16 version 2, u16 ranks, u32 slot size; in each slot u32 length and a msgpack map. The length is 0
// while its scheduler writes.
std::vector<RankLoad> ParseLoads(std::string_view file);
// Reads the file, some ten KB, again where it is being written. Empty: there is none, or no rank is known.
std::vector<RankLoad> ReadLoads(const std::string& path);

}  // namespace portico::sglang
