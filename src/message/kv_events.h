// What a prefix cache takes in and lets go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace portico {

struct KvBlock {
  int64_t hash = 0;
  std::vector<int32_t> tokens;
  std::optional<int64_t> lora_id;
};

struct KvEvent {
  enum class Kind : uint8_t { kStored, kRemoved, kCleared };
  Kind kind = Kind::kCleared;
  // kStored: each block follows the one before it, and the first the parent, unless it begins a prompt.
  std::vector<KvBlock> blocks;
  std::optional<int64_t> parent;
  std::vector<int64_t> removed;  // kRemoved: hashes
  std::optional<int32_t> level;  // 0: the device, 1: the host's memory, 2: a disk, 3: elsewhere
};

struct KvEventBatch {
  uint64_t sequence = 0;  // from 1 on, one more each time
  double timestamp = 0;   // Unix seconds
  int32_t rank = -1;      // data-parallel; -1: all
  std::vector<KvEvent> events;
  // Of one that tells a part of the state: its place among so many; 0 of 0: it tells what has happened.
  uint32_t chunk = 0;
  uint32_t chunks = 0;
  uint64_t blocks = 0;  // of all chunks
};
using KvEventBatchPtr = std::shared_ptr<const KvEventBatch>;

// What a reader of events wants next.
enum class KvWish : uint8_t {
  kNothing,  // no events at all
  kMore,
  kState,  // the state anew: what has come cannot be understood without
};

}  // namespace portico
