#include "engine/llama/kv_cache.h"

#include <algorithm>
#include <limits>

namespace portico::llama {
namespace {

// A cut costs a pass over all cells, so a full cache is not cut for one token at a time.
constexpr int32_t kLeastCut = 64;

}  // namespace

KvCache::KvCache(KvMemory* memory, int64_t cells, int32_t sequences, bool sharing)
    : memory_(memory), cells_(cells), sharing_(sharing) {
  for (int32_t i = sequences - 1; i >= 0; --i) free_sequences_.push_back(i);
}

KvCache::Lookup KvCache::Find(std::span<const TokenId> tokens, int32_t limit) const {
  if (!sharing_) return {};
  const PrefixTree::Match match = tree_.Find(tokens, limit);
  return {match.length, match.unpinned};
}

bool KvCache::Open(std::span<const TokenId> tokens, int32_t limit, KvBranch* branch) {
  PrefixNode* node = sharing_ ? tree_.NodeAt(tree_.Find(tokens, limit)) : tree_.root();
  tree_.Pin(node);  // before a sequence is reclaimed, so that this prefix is not
  if (!TakeSequence(&branch->sequence)) {
    tree_.Unpin(node);
    return false;
  }
  tree_.Touch(node);
  branch->node = node;
  branch->length = node->depth;
  if (node->depth > 0) memory_->Share(SequenceOf(node), branch->sequence, 0, node->depth);
  return true;
}

bool KvCache::TakeSequence(int32_t* sequence) {
  while (free_sequences_.empty()) {
    if (!Evict(std::numeric_limits<int32_t>::max())) return false;
  }
  *sequence = free_sequences_.back();
  free_sequences_.pop_back();
  return true;
}

void KvCache::FreeSequence(int32_t sequence) {
  memory_->Remove(sequence, 0, -1);
  free_sequences_.push_back(sequence);
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
  PrefixNode* rest = tree_.Cut(leaf, std::min(count, leaf->size()));
  if (rest == nullptr) {
    FreeSequence(sequence);
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
      Append(run, branch);
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

// Makes the run, which nobody has, part of the tree. The branch lends its sequence to the new leaf.
void KvCache::Append(std::span<const TokenId> run, KvBranch* branch) {
  PrefixNode* node = branch->node;
  own_ -= static_cast<int64_t>(run.size());
  if (node->leaf() && node->sequence == branch->sequence && node->pins == 1) {
    tree_.Extend(node, run);
    return;
  }
  PrefixNode* child = tree_.AddChild(node, run);
  child->sequence = branch->sequence;
  if (node->owned) FreeSequence(node->sequence);
  node->sequence = -1;
  node->owned = false;
  tree_.Pin(child);
  tree_.Unpin(node);
  branch->node = child;
}

void KvCache::Close(std::span<const TokenId> tokens, bool keep, KvBranch* branch) {
  if (branch->sequence < 0) return;
  if (keep) Publish(tokens, branch);
  PrefixNode* node = branch->node;
  own_ -= branch->length - node->depth;
  if (node->sequence == branch->sequence) {
    if (branch->length > node->depth) memory_->Remove(branch->sequence, node->depth, -1);
    node->owned = true;
  } else {
    FreeSequence(branch->sequence);
  }
  tree_.Unpin(node);
  *branch = KvBranch{};
}

void KvCache::Flush() {
  while (Evict(std::numeric_limits<int32_t>::max())) {
  }
}

}  // namespace portico::llama
