// How many KV cells the engine takes, and why: the sentence is printed at the start.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace portico::llama {

struct KvSizeRequest {
  int64_t max_total_tokens = 0;  // what the user wants; 0: choose
  int64_t context_length = 0;    // of one sequence
  int64_t max_running = 0;
  int64_t bytes_per_cell = 0;
  int64_t free_bytes = 0;  // of memory, now
};

struct KvSize {
  int64_t cells = 0;
  std::string reason;  // "as asked for", "a quarter of the free memory", …
};

// The least that serves a request: its prompt's token and the one that follows.
inline constexpr int64_t kLeastCells = 2;

// Asked for: that many. Else enough for every running request to fill its context, but at most
// kMostDefaultCells and at most a quarter of the free memory; one context at least.
// INVALID_ARGUMENT (field "max_total_tokens"): asked for fewer than kLeastCells.
// RESOURCE_EXHAUSTED: that does not fit into the free memory.
StatusOr<KvSize> ChooseKvSize(const KvSizeRequest& request);

// Memory that can be had without swapping, in bytes: the machine's (/proc/meminfo) or the control
// group's. The machine's includes the pages of mapped files, of which `mapped_bytes` are in use.
int64_t FreeMemoryBytes(int64_t mapped_bytes = 0);

// "3.5 GiB", "640 MiB", "12 KiB".
std::string HumanBytes(int64_t bytes);

// Cached cells cost no time (attention/cell_attention.h), but memory, and a mask of every cell for each token of a step.
inline constexpr int64_t kMostDefaultCells = 16384;

}  // namespace portico::llama
