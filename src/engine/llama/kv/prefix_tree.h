// A radix tree over token sequences: which prefixes have their keys and values in the cache. Pure
// bookkeeping; which cells those are is kv_cache.h's matter. A node is a run of tokens; its prefix
// is the runs from the root to it.
//
// A node is pinned while a running request stands on it or below. Only leaves without pins can be
// cut, the least recently used first, and from their end, so a prefix outlives its continuations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/llama/kv/block_log.h"
#include "message/sampling.h"

namespace portico::llama {

struct PrefixNode {
  std::vector<TokenId> tokens;
  int32_t depth = 0;  // length of the prefix, this run included
  PrefixNode* parent = nullptr;
  std::vector<std::unique_ptr<PrefixNode>> children;  // each begins with another token
  int32_t pins = 0;                                   // requests standing on this node or below
  uint64_t last_use = 0;
  // Leaves: a sequence whose cells hold the whole prefix. The tree's own, or lent by the request
  // standing here.
  int32_t sequence = -1;
  bool owned = false;

  // Of the whole blocks that end within this run; empty where nobody wants to know (block_log.h).
  std::vector<BlockDigest> blocks;

  int32_t size() const { return static_cast<int32_t>(tokens.size()); }
  // Of `blocks`, those that end within the first `length` tokens of the run.
  size_t BlocksWithin(int32_t length) const {
    const int32_t begin = depth - size();
    return std::min(blocks.size(),
                    static_cast<size_t>((begin + length) / kBlockTokens - begin / kBlockTokens));
  }
  bool leaf() const { return children.empty(); }
};

class PrefixTree {
 public:
  PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  struct Match {
    PrefixNode* node = nullptr;  // where the match ends
    int32_t length = 0;          // tokens matched; inside `node` where less than its depth
    int32_t unpinned = 0;        // of these, how many no running request holds
  };
  // The longest cached prefix of `tokens`, at most `limit` long.
  Match Find(std::span<const TokenId> tokens, int32_t limit) const;

  // The node that ends after `length` tokens of the match; splits one where needed.
  PrefixNode* NodeAt(const Match& match);

  // Adds the run as a child, or at the end of a leaf. No child may begin with its first token.
  PrefixNode* AddChild(PrefixNode* parent, std::span<const TokenId> run);
  void Extend(PrefixNode* leaf, std::span<const TokenId> run);

  // The child that begins with `token`, or null.
  static PrefixNode* ChildOf(const PrefixNode* node, TokenId token);

  // A request begins or ceases to stand on a node.
  void Pin(PrefixNode* node);
  void Unpin(PrefixNode* node);

  // Marks the whole prefix as used now.
  void Touch(PrefixNode* node);

  // The leaf to cut next, or null.
  PrefixNode* LeastRecentlyUsed() const;

  // Cuts `count` tokens (at most size()) off the end of a leaf without pins; a leaf cut to nothing
  // goes. Returns the leaf, or the parent that became one, or null where the parent has other
  // children or is the root.
  PrefixNode* Cut(PrefixNode* leaf, int32_t count);

  PrefixNode* root() { return &root_; }
  int64_t size() const { return size_; }      // tokens of all nodes
  int64_t pinned() const { return pinned_; }  // of these, in pinned nodes

 private:
  PrefixNode* Split(PrefixNode* node, int32_t length);
  void MergeWithOnlyChild(PrefixNode* node);

  PrefixNode root_;
  int64_t size_ = 0;
  int64_t pinned_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace portico::llama
