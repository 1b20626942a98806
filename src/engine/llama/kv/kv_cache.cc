#include "engine/llama/kv/kv_cache.h"

#include <algorithm>
#include <limits>

namespace portico::llama {
namespace {

// A cut costs a pass over all cells, so a full cache is not cut for one token at a time.
constexpr int32_t kLeastCut = 64;

}  // namespace

KvCache::KvCache(KvMemory* memory, int64_t cells, int32_t running, int32_t kept)
    : memory_(memory), cells_(cells), running_(running), sharing_(kept > 0) {
  for (int32_t i = running - 1; i >= 0; --i) free_running_.push_back(i);
  for (int32_t i = running + kept - 1; i >= running; --i) free_kept_.push_back(i);
}

KvCache::Lookup KvCache::Find(std::span<const TokenId> tokens, int32_t limit) const {
  if (!sharing_) return {};
  const PrefixTree::Match match = tree_.Find(tokens, limit);
  return {match.length, match.unpinned};
}

KvBranch KvCache::Open(std::span<const TokenId> tokens, int32_t limit) {
  KvBranch branch;
  branch.node = sharing_ ? tree_.NodeAt(tree_.Find(tokens, limit)) : tree_.root();
  branch.length = branch.node->depth;
  branch.sequence = free_running_.back();
  free_running_.pop_back();
  tree_.Pin(branch.node);
  tree_.Touch(branch.node);
  if (branch.length > 0) {
    memory_->Share(SequenceOf(branch.node), branch.sequence, 0, branch.length);
  }
  return branch;
}

// There always is one: leaves that cannot be evicted have a running request each, and there are at
// least as many kept sequences.
int32_t KvCache::TakeKept() {
  while (free_kept_.empty()) Evict(std::numeric_limits<int32_t>::max());
  const int32_t sequence = free_kept_.back();
  free_kept_.pop_back();
  return sequence;
}

void KvCache::Free(int32_t sequence) {
  memory_->Remove(sequence, 0, -1);
  (sequence < running_ ? free_running_ : free_kept_).push_back(sequence);
}

bool KvCache::Reserve(int64_t count) {
  if (count > available()) return false;
  for (;;) {
    const int64_t missing = count - (cells_ - used() - cached());
    if (missing <= 0) return true;
    const int64_t cut = std::max<int64_t>(missing, kLeastCut);
    if (!Evict(static_cast<int32_t>(std::min<int64_t>(cut, std::numeric_limits<int32_t>::max())))) {
      return false;
    }
  }
}

// Cuts up to `count` tokens off the least recently used leaf.
bool KvCache::Evict(int32_t count) {
  PrefixNode* leaf = tree_.LeastRecentlyUsed();
  if (leaf == nullptr) return false;
  const int32_t sequence = leaf->sequence;
  count = std::min(count, leaf->size());
  if (log_ != nullptr) {
    log_->Removed(std::span(leaf->blocks).subspan(leaf->BlocksWithin(leaf->size() - count)));
  }
  PrefixNode* rest = tree_.Cut(leaf, count);
  if (rest == nullptr) {
    Free(sequence);
    return true;
  }
  memory_->Remove(sequence, rest->depth, -1);
  rest->sequence = sequence;
  rest->owned = true;
  return true;
}

void KvCache::Grow(KvBranch* branch, int32_t count) {
  branch->length += count;
  own_ += count;
}

void KvCache::Shrink(KvBranch* branch, int32_t count) {
  branch->length -= count;
  own_ -= count;
  memory_->Remove(branch->sequence, branch->length, -1);
}

// Any leaf below has the cells of all that is above it.
int32_t KvCache::SequenceOf(const PrefixNode* node) const {
  while (!node->leaf()) node = node->children.front().get();
  return node->sequence;
}

void KvCache::Publish(std::span<const TokenId> tokens, KvBranch* branch) {
  if (!sharing_) return;
  while (branch->node->depth < branch->length) {
    const int32_t begin = branch->node->depth;
    const auto run = tokens.subspan(begin, branch->length - begin);
    PrefixNode* child = PrefixTree::ChildOf(branch->node, run.front());
    if (child == nullptr) {
      Append(tokens.first(static_cast<size_t>(branch->length)), branch);
      break;
    }
    const auto end =
        std::mismatch(run.begin(), run.end(), child->tokens.begin(), child->tokens.end());
    const auto common = static_cast<int32_t>(end.first - run.begin());
    Adopt(child, begin + common, branch);
  }
  tree_.Touch(branch->node);
}

// Another request has computed the same tokens meanwhile: use its cells up to `end`, inside
// `child`.
void KvCache::Adopt(PrefixNode* child, int32_t end, KvBranch* branch) {
  const int32_t begin = branch->node->depth;
  const int32_t source = SequenceOf(child);
  PrefixNode* node = tree_.NodeAt({child, end, 0});
  memory_->Remove(branch->sequence, begin, end);
  memory_->Share(source, branch->sequence, begin, end);
  own_ -= end - begin;
  tree_.Pin(node);
  tree_.Unpin(branch->node);
  branch->node = node;
}

// Makes what stands behind the branch's node, which nobody has, part of the tree. The branch lends its sequence to the new
// leaf.
void KvCache::Append(std::span<const TokenId> tokens, KvBranch* branch) {
  PrefixNode* node = branch->node;
  const int32_t begin = node->depth;
  const auto run = tokens.subspan(static_cast<size_t>(begin));
  own_ -= static_cast<int64_t>(run.size());
  if (node->leaf() && node->sequence == branch->sequence && node->pins == 1) {
    tree_.Extend(node, run);
    Tell(tokens, begin, node);
    return;
  }
  PrefixNode* child = tree_.AddChild(node, run);
  Tell(tokens, begin, child);
  child->sequence = branch->sequence;
  if (node->owned) Free(node->sequence);
  node->sequence = -1;
  node->owned = false;
  tree_.Pin(child);
  tree_.Unpin(node);
  branch->node = child;
}

// `node` has got what stands behind `begin`.
void KvCache::Tell(std::span<const TokenId> tokens, int32_t begin, PrefixNode* node) {
  if (log_ == nullptr) return;
  const PrefixNode* above = node;
  while (above != nullptr && above->blocks.empty()) above = above->parent;
  const BlockDigest before = above == nullptr ? BlockDigest{} : above->blocks.back();
  log_->Stored(tokens, begin, above == nullptr ? nullptr : &before, &node->blocks);
}

void KvCache::Close(std::span<const TokenId> tokens, bool keep, KvBranch* branch) {
  if (branch->sequence < 0) return;
  if (keep) Publish(tokens, branch);
  PrefixNode* node = branch->node;
  own_ -= branch->length - node->depth;
  if (node->sequence == branch->sequence) {  // lent
    node->sequence = TakeKept();
    node->owned = true;
    memory_->Share(branch->sequence, node->sequence, 0, node->depth);
  }
  Free(branch->sequence);
  tree_.Unpin(node);
  *branch = KvBranch{};
}

void KvCache::Flush() {
  while (Evict(std::numeric_limits<int32_t>::max())) {
  }
  if (log_ != nullptr && tree_.size() == 0) log_->Cleared();
}

}  // namespace portico::llama
