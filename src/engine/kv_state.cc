#include "engine/kv_state.h"

#include <algorithm>
#include <bit>

namespace portico {
namespace {

constexpr int32_t kMaxLevel = 30;

uint32_t BitOf(std::optional<int32_t> level) {
  return uint32_t{1} << (level ? std::clamp(*level, 0, kMaxLevel - 1) + 1 : 0);
}

std::optional<int32_t> LevelOf(uint32_t levels) {
  const int first = std::countr_zero(levels);
  return first == 0 ? std::nullopt : std::optional<int32_t>(first - 1);
}

}  // namespace

void KvState::Apply(const KvEventBatch& batch) {
  for (const KvEvent& event : batch.events) {
    switch (event.kind) {
      case KvEvent::Kind::kStored:
        Store(batch.rank, event);
        break;
      case KvEvent::Kind::kRemoved:
        Remove(batch.rank, event);
        break;
      case KvEvent::Kind::kCleared:
        Clear(batch.rank);
        break;
    }
  }
}

void KvState::Store(int32_t rank, const KvEvent& event) {
  std::optional<int64_t> parent = event.parent;
  for (const KvBlock& block : event.blocks) {
    const Key key{rank, block.hash};
    const auto found = places_.find(key);
    if (found != places_.end()) {
      found->second->levels |= BitOf(event.level);
    } else if (complete_ && places_.size() < kMaxBlocks) {
      held_.push_back({key, block, parent, BitOf(event.level)});
      places_.emplace(key, std::prev(held_.end()));
    } else {
      held_.clear();
      places_.clear();
      complete_ = false;
      return;
    }
    parent = block.hash;
  }
}

void KvState::Remove(int32_t rank, const KvEvent& event) {
  for (const int64_t hash : event.removed) {
    const auto found = places_.find(Key{rank, hash});
    if (found == places_.end()) continue;
    found->second->levels &= ~BitOf(event.level);
    if (found->second->levels != 0) continue;
    held_.erase(found->second);
    places_.erase(found);
  }
}

void KvState::Clear(int32_t rank) {
  if (rank < 0 || !complete_) {
    held_.clear();
    places_.clear();
    // A rank's clearing says nothing of the others.
    complete_ = complete_ || rank < 0;
    return;
  }
  for (auto at = held_.begin(); at != held_.end();) {
    const auto here = at++;
    if (here->key.first != rank) continue;
    places_.erase(here->key);
    held_.erase(here);
  }
}

std::vector<KvEventBatch> KvState::Batches(uint64_t last, double timestamp) const {
  std::vector<KvEventBatch> batches(1);
  batches.back().events.push_back({});  // cleared
  size_t blocks = 0;
  const Held* before = nullptr;
  for (const Held& held : held_) {
    const bool follows = before != nullptr && before->key.first == held.key.first &&
                         before->levels == held.levels && held.parent == before->key.second;
    const int32_t rank = held.key.first;
    // No more chunks than there are numbers.
    const bool full = blocks >= kMaxBlocksOfBatch && batches.size() < last;
    if (full || batches.back().rank != rank) {
      batches.emplace_back().rank = rank;
      blocks = 0;
    }
    if (blocks == 0 || !follows) {
      KvEvent event;
      event.kind = KvEvent::Kind::kStored;
      event.parent = held.parent;
      event.level = LevelOf(held.levels);
      batches.back().events.push_back(std::move(event));
    }
    batches.back().events.back().blocks.push_back(held.block);
    ++blocks;
    before = &held;
  }
  const size_t count = batches.size();
  for (size_t i = 0; i < count; ++i) {
    KvEventBatch& batch = batches[i];
    batch.sequence = last - std::min<uint64_t>(count - 1 - i, last - 1);
    batch.timestamp = timestamp;
    batch.chunk = static_cast<uint32_t>(i);
    batch.chunks = static_cast<uint32_t>(count);
    batch.blocks = held_.size();
  }
  return batches;
}

}  // namespace portico
