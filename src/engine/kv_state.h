// The blocks that a prefix cache holds, as its events tell: what a subscriber who comes later has to know first.
// Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "message/kv_events.h"

namespace portico {

class KvState {
 public:
  // Of all ranks. A cache with more of them is not kept: complete() is false until it is cleared.
  static constexpr size_t kMaxBlocks = size_t{1} << 19;
  static constexpr size_t kMaxBlocksOfBatch = 4096;

  void Apply(const KvEventBatch& batch);
  bool complete() const { return complete_; }
  size_t size() const { return places_.size(); }

  // The state as it was after the batch `last`, which is not 0: chunks whose numbers end with it. The first one begins with
  // clearing; parents come first.
  std::vector<KvEventBatch> Batches(uint64_t last, double timestamp) const;

 private:
  using Key = std::pair<int32_t, int64_t>;  // rank and hash
  struct Held {
    Key key;
    KvBlock block;
    std::optional<int64_t> parent;
    uint32_t levels = 0;  // a bit for each on which it is; the first: no level is named
  };
  using Place = std::list<Held>::iterator;

  void Store(int32_t rank, const KvEvent& event);
  void Remove(int32_t rank, const KvEvent& event);
  void Clear(int32_t rank);

  std::list<Held> held_;  // in the order in which they were stored
  absl::flat_hash_map<Key, Place> places_;
  bool complete_ = true;
};

}  // namespace portico
