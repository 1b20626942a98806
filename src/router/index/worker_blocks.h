// A worker's events of its cache as the hashes of block_hash.h. Workers name their blocks as they like and cut prompts into
// blocks of their own size, 1 token to some hundreds; the index has blocks of kBlockTokens. So each block that the worker
// has is kept here with what is needed to go on from it. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "message/kv_events.h"
#include "message/sampling.h"

namespace portico::router {

class WorkerBlocks {
 public:
  // What a block that is kept takes, about.
  static constexpr size_t kBytesOfBlock = 96;

  // Appends what the worker has and has not any more, in the index's blocks. `rank` -1 stands for all: of its kCleared, after
  // which the worker has none, nothing is appended.
  // What cannot be used is left out: blocks whose parent is not known, and those of adapters.
  void Apply(const KvEvent& event, int32_t rank, std::vector<uint64_t>* added,
             std::vector<uint64_t>* removed);

  size_t size() const { return blocks_.size(); }

 private:
  struct Block {
    uint64_t chain = 0;                     // of the prefix's last whole block of the index
    absl::InlinedVector<uint64_t, 1> ends;  // blocks of the index that end within this one
    absl::InlinedVector<TokenId, 2> tail;   // this block's tokens behind the last of them
    int64_t parent = 0;                     // whose tail stands before `tail`, if nothing ends here
    bool has_parent = false;
    uint32_t levels = 0;  // a bit for each on which it is
    int32_t rank = 0;
  };

  void Store(const KvEvent& event, int32_t rank, std::vector<uint64_t>* added);
  bool Make(const KvBlock& block, const int64_t* parent, Block* made) const;
  // Appends what stands behind the prefix's last whole block.
  void AppendTail(int64_t key, std::vector<TokenId>* tokens) const;
  void Remove(const KvEvent& event, int32_t rank, std::vector<uint64_t>* removed);
  void Clear(int32_t rank, std::vector<uint64_t>* removed);

  absl::flat_hash_map<int64_t, Block> blocks_;  // by the worker's name and its rank
};

}  // namespace portico::router
