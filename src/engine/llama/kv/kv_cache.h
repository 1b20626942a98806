// The cache of keys and values: which cells are whose, and which prefixes are kept for requests to
// come.
//
// libllama has one pool of cells. A cell belongs to a position and to any number of sequences; a
// sequence attends to its own cells. So a prefix is shared by marking its cells as a second
// sequence's too, without copying, and a cell is free once no sequence has it. Every running request
// is a branch with a sequence of its own; every leaf of the prefix tree has one too, its request's
// while that runs and one of the kept ones afterwards. So kept sequences, like cells, run out, and
// both are reclaimed from the least recently used leaves. Sharing is exact up to float rounding: keys
// and values of a token depend on its prefix only.
//
// Running sequences have the low numbers: libllama's work a step grows with the square of the
// greatest number in a batch (65,000 checks for 256).
//
// Not thread safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/llama/kv/prefix_tree.h"
#include "message/sampling.h"

namespace portico::llama {

// What libllama can do with cells. Positions [begin, end); end -1: to the last.
class KvMemory {
 public:
  virtual ~KvMemory() = default;
  // Gives all cells of `from` in the range to `to` too.
  virtual void Share(int32_t from, int32_t to, int32_t begin, int32_t end) = 0;
  // Takes the range from a sequence; cells that no sequence has are free.
  virtual void Remove(int32_t sequence, int32_t begin, int32_t end) = 0;
};

// The place of one running request. Its first node->depth tokens are in the tree, the rest is its
// own.
struct KvBranch {
  int32_t sequence = -1;  // -1: closed
  int32_t length = 0;     // tokens with cells
  PrefixNode* node = nullptr;
};

class KvCache {
 public:
  // Sequences 0 to running - 1 are for branches, `kept` more for prefixes: at least as many, or 0 for
  // a cache that neither keeps nor shares (memory that cannot be cut, such as recurrent states).
  KvCache(KvMemory* memory, int64_t cells, int32_t running, int32_t kept);

  struct Lookup {
    int32_t length = 0;    // of the prefix that Open() would share
    int32_t unpinned = 0;  // of these, cells that count as available now and would not afterwards
  };
  Lookup Find(std::span<const TokenId> tokens, int32_t limit) const;

  // Opens a branch on the longest cached prefix of `tokens`, at most `limit` long. At most `running`
  // are open at a time.
  KvBranch Open(std::span<const TokenId> tokens, int32_t limit);

  // Makes `count` cells free, evicting where needed. False: not even eviction can.
  bool Reserve(int64_t count);

  // The branch gets `count` more cells, which must be free: they are about to be computed.
  void Grow(KvBranch* branch, int32_t count);

  // The branch gives up its last `count` cells, which Grow() gave it and nobody shares.
  void Shrink(KvBranch* branch, int32_t count);

  // Lets others share what the branch has computed: `tokens` are the request's. Where the same
  // tokens are in the tree already, the branch takes those cells and frees its own.
  void Publish(std::span<const TokenId> tokens, KvBranch* branch);

  // Ends the branch. With `keep` its tokens stay as an evictable prefix, else its own cells are
  // freed.
  void Close(std::span<const TokenId> tokens, bool keep, KvBranch* branch);

  // Drops all evictable prefixes.
  void Flush();

  // What comes and goes from now on is told to `log`, which outlives this. While nothing is cached.
  void TellTo(BlockLog* log) { log_ = log; }

  // Goes on in other memory of the same size. Nothing may be used or cached.
  void Use(KvMemory* memory) { memory_ = memory; }

  int64_t cells() const { return cells_; }
  int64_t used() const { return tree_.pinned() + own_; }            // held by open branches
  int64_t cached() const { return tree_.size() - tree_.pinned(); }  // evictable
  int64_t available() const { return cells_ - used(); }             // free or evictable
  bool sharing() const { return sharing_; }

 private:
  int32_t TakeKept();
  void Free(int32_t sequence);
  bool Evict(int32_t count);
  int32_t SequenceOf(const PrefixNode* node) const;
  void Adopt(PrefixNode* child, int32_t end, KvBranch* branch);
  void Append(std::span<const TokenId> tokens, KvBranch* branch);
  void Tell(std::span<const TokenId> tokens, int32_t begin, PrefixNode* node);

  KvMemory* memory_;
  BlockLog* log_ = nullptr;
  PrefixTree tree_;
  int64_t cells_;
  int64_t own_ = 0;  // cells of open branches beyond their nodes
  int32_t running_;
  bool sharing_;
  std::vector<int32_t> free_running_;
  std::vector<int32_t> free_kept_;
};

}  // namespace portico::llama
