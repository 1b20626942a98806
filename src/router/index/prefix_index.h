// Which worker has which prefix in its KV cache, as far as a gateway can know: from what it sent
// there, or from what the workers tell. A prefix is the hash of its last block (block_hash.h).
//
// One table maps a block to a 64-bit set of workers, so a prompt is looked up once for all of them; a
// second one maps (block, worker) to its place in that worker's order of use. With more than 64
// workers a block has an entry for each 64 that hold it.
//
// Each worker's blocks are forgotten as its engine does: the least recently used first, leaves before
// what they hang on, once there are more than its cache holds. All together are bounded by bytes;
// eviction happens inside Insert(). A removed worker is out of all answers at once (O(1)); its memory
// is taken back by the insertions that follow.
//
// Measured here (2 cores of a Xeon; prefix_index_bench.cc): see docs/routing.md.
// Not thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "router/index/sub_tables.h"

namespace portico::router {

class PrefixIndex {
 public:
  using Place = uint32_t;  // a worker's number here, dense, used again after removal

  // At most `max_bytes` are allocated (at least 1 MiB are).
  explicit PrefixIndex(size_t max_bytes);

  // `capacity`: blocks that the worker's cache holds; 0: not known.
  Place AddWorker(int64_t capacity);
  void SetCapacity(Place worker, int64_t capacity);
  void RemoveWorker(Place worker);
  // Places below this number may be in use.
  size_t places() const { return workers_.size(); }

  // Sets (*depths)[w] to the number of leading blocks of `chain` that worker w has; 0 for places
  // without a worker. Resizes `depths` to places(). A block missing before one that is there may be
  // overlooked (a worker that says it dropped one from the middle).
  void Match(std::span<const uint64_t> chain, std::vector<int32_t>* depths) const;

  // The worker has, or soon will have, these blocks, and has just used them.
  void Insert(Place worker, std::span<const uint64_t> chain);

  // One block, as workers tell of it.
  void Add(Place worker, uint64_t block) { Insert(worker, {&block, 1}); }
  void Remove(Place worker, uint64_t block);

  int64_t blocks_of(Place worker) const { return workers_[worker].blocks; }
  // (block, worker) pairs, those of removed workers that are not reclaimed yet included.
  size_t pairs() const { return pairs_used_; }
  size_t max_pairs() const { return max_pairs_; }
  size_t bytes() const;
  uint64_t evictions() const { return evictions_; }

 private:
  struct Pair {
    uint64_t block = 0;  // the key in blocks_, so with the worker's group in it
    uint32_t worker = 0;
    uint32_t used = 0;  // clock_ of the last use
    uint32_t before = 0, after = 0;
  };
  struct BlockSlot {
    uint64_t key = 0;
    uint64_t workers = 0;
  };
  struct BlockTraits {
    using Slot = BlockSlot;
    static bool Empty(const Slot& slot) { return slot.key == 0; }
    static uint64_t HashOf(const PrefixIndex&, const Slot& slot) { return slot.key; }
  };
  struct PairSlot {
    uint32_t pair = 0;  // 0: none
    uint32_t tag = 0;   // bits of the hash
  };
  struct PairTraits {
    using Slot = PairSlot;
    static bool Empty(const Slot& slot) { return slot.pair == 0; }
    static uint64_t HashOf(const PrefixIndex& index, const Slot& slot) {
      const Pair& pair = index.At(slot.pair);
      return PairHash(pair.block, pair.worker);
    }
  };
  struct WorkerState {
    enum class Use : uint8_t { kFree, kLive, kDying } use = Use::kFree;
    int64_t capacity = 0;
    int64_t blocks = 0;
    uint32_t newest = 0, oldest = 0;  // pairs
  };

  static constexpr uint32_t kChunk = 4096;

  uint64_t HoldersOf(uint64_t key) const;
  static uint64_t BlockKey(uint64_t block, uint32_t group);
  static uint64_t PairHash(uint64_t key, uint32_t worker);
  Pair& At(uint32_t pair) const { return chunks_[pair / kChunk].get()[pair % kChunk]; }
  PairSlot* FindPair(uint64_t key, Place worker) const;
  void Unlink(uint32_t pair);
  void LinkNewest(uint32_t pair);
  uint32_t TakePair();
  void Drop(uint32_t pair);
  void Reclaim(size_t count);
  void EvictOldest();

  const size_t max_pairs_;
  SubTables<BlockTraits> blocks_;
  SubTables<PairTraits> pair_table_;
  std::vector<std::unique_ptr<Pair[]>> chunks_;
  uint32_t next_pair_ = 1;
  uint32_t free_pair_ = 0;  // linked by `after`
  size_t pairs_used_ = 0;
  uint32_t clock_ = 0;
  uint64_t evictions_ = 0;
  std::vector<WorkerState> workers_;
  std::vector<uint64_t> live_;  // a bit for each live worker, by group of 64
  std::vector<Place> free_places_;
  std::vector<Place> dying_;
};

}  // namespace portico::router
