#include "router/index/worker_blocks.h"

#include <algorithm>

#include "router/index/block_hash.h"

namespace portico::router {
namespace {

// Ranks of a server give equal blocks equal names.
int64_t KeyOf(int64_t hash, int32_t rank) {
  return rank <= 0 ? hash
                   : static_cast<int64_t>(
                         ChainHash(static_cast<uint64_t>(hash), static_cast<uint64_t>(rank)));
}

uint32_t LevelBit(std::optional<int32_t> level) {
  return uint32_t{1} << (level ? std::clamp(*level, 0, 29) + 1 : 0);
}

}  // namespace

void WorkerBlocks::Apply(const KvEvent& event, int32_t rank, std::vector<uint64_t>* added,
                         std::vector<uint64_t>* removed) {
  switch (event.kind) {
    case KvEvent::Kind::kStored:
      return Store(event, rank, added);
    case KvEvent::Kind::kRemoved:
      return Remove(event, rank, removed);
    case KvEvent::Kind::kCleared:
      return Clear(rank, removed);
  }
}

void WorkerBlocks::Store(const KvEvent& event, int32_t rank, std::vector<uint64_t>* added) {
  int64_t parent = event.parent ? KeyOf(*event.parent, rank) : 0;
  bool has_parent = event.parent.has_value();
  for (const KvBlock& block : event.blocks) {
    if (block.lora_id.has_value()) return;
    const int64_t key = KeyOf(block.hash, rank);
    const auto found = blocks_.find(key);
    if (found != blocks_.end()) {
      found->second.levels |= LevelBit(event.level);
    } else {
      Block made;
      if (!Make(block, has_parent ? &parent : nullptr, &made)) return;
      made.levels = LevelBit(event.level);
      made.rank = std::max(rank, 0);
      added->insert(added->end(), made.ends.begin(), made.ends.end());
      blocks_.emplace(key, std::move(made));
    }
    parent = key;
    has_parent = true;
  }
}

bool WorkerBlocks::Make(const KvBlock& block, const int64_t* parent, Block* made) const {
  std::vector<TokenId> tokens;
  made->chain = kNoModelSalt;
  if (parent != nullptr) {
    const auto found = blocks_.find(*parent);
    if (found == blocks_.end()) return false;
    made->chain = found->second.chain;
    made->parent = *parent;
    made->has_parent = true;
    AppendTail(*parent, &tokens);
  }
  const size_t before = tokens.size();
  tokens.insert(tokens.end(), block.tokens.begin(), block.tokens.end());
  std::vector<uint64_t> ends;
  HashTokenBlocks(tokens, made->chain, &ends);
  if (!ends.empty()) made->chain = ends.back();
  made->ends.assign(ends.begin(), ends.end());
  const size_t tail = ends.empty() ? before : ends.size() * kBlockTokens;
  made->tail.assign(tokens.begin() + static_cast<ptrdiff_t>(tail), tokens.end());
  return true;
}

void WorkerBlocks::AppendTail(int64_t key, std::vector<TokenId>* tokens) const {
  absl::InlinedVector<const Block*, kBlockTokens> line;
  for (auto found = blocks_.find(key); found != blocks_.end() && line.size() < kBlockTokens;
       found = blocks_.find(found->second.parent)) {
    line.push_back(&found->second);
    if (!found->second.ends.empty() || !found->second.has_parent) break;
  }
  for (size_t i = line.size(); i-- > 0;) {
    tokens->insert(tokens->end(), line[i]->tail.begin(), line[i]->tail.end());
  }
}

void WorkerBlocks::Remove(const KvEvent& event, int32_t rank, std::vector<uint64_t>* removed) {
  for (const int64_t hash : event.removed) {
    const auto found = blocks_.find(KeyOf(hash, rank));
    if (found == blocks_.end()) continue;
    found->second.levels &= ~LevelBit(event.level);
    if (found->second.levels != 0) continue;
    removed->insert(removed->end(), found->second.ends.begin(), found->second.ends.end());
    blocks_.erase(found);
  }
}

void WorkerBlocks::Clear(int32_t rank, std::vector<uint64_t>* removed) {
  if (rank < 0) return blocks_.clear();
  absl::erase_if(blocks_, [&](const auto& entry) {
    const Block& block = entry.second;
    if (block.rank != rank) return false;
    removed->insert(removed->end(), block.ends.begin(), block.ends.end());
    return true;
  });
}

}  // namespace portico::router
