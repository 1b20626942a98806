#include "router/index/prefix_index.h"

#include <algorithm>
#include <bit>

namespace portico::router {
namespace {

// A pair that shares its block with no other costs at most this, whatever the tables' load is. Parts
// double when they are 3/4 full and do not shrink; a part with many entries may then have some fewer
// than when it grew, hence 0.3 and not 3/8.
constexpr double kPairBytes = 24 + (16 + 8) / 0.3;
constexpr size_t kFixedBytes = 512 << 10;
constexpr size_t kPrefetchAhead = 12;
// Blocks that Match() skips at once where all that hold the first hold the last too.
constexpr size_t kStride = 8;
// Eviction takes several at once, all of them about as old as the oldest.
constexpr int kEvictAtOnce = 256;

}  // namespace

PrefixIndex::PrefixIndex(size_t max_bytes)
    : max_pairs_(static_cast<size_t>(
          static_cast<double>(std::max<size_t>(max_bytes, 1 << 20) - kFixedBytes) / kPairBytes)) {}

uint64_t PrefixIndex::BlockKey(uint64_t block, uint32_t group) {
  const uint64_t key = block ^ (group * 0x9E3779B97F4A7C15ull);
  return key == 0 ? 1 : key;
}

uint64_t PrefixIndex::PairHash(uint64_t key, uint32_t worker) {
  const uint64_t mixed = (key ^ worker) * 0xD6E8FEB86659FD93ull;
  return mixed ^ (mixed >> 32);
}

PrefixIndex::Place PrefixIndex::AddWorker(int64_t capacity) {
  if (free_places_.empty()) {
    // A whole group at a time, so that masks and places agree.
    const auto first = static_cast<Place>(workers_.size());
    workers_.resize(first + 64);
    live_.push_back(0);
    for (Place i = 64; i-- > 0;) free_places_.push_back(first + i);
  }
  const Place place = free_places_.back();
  free_places_.pop_back();
  WorkerState& worker = workers_[place];
  worker = WorkerState{};
  worker.use = WorkerState::Use::kLive;
  worker.capacity = capacity;
  live_[place / 64] |= uint64_t{1} << (place % 64);
  return place;
}

void PrefixIndex::SetCapacity(Place worker, int64_t capacity) {
  workers_[worker].capacity = capacity;
}

void PrefixIndex::RemoveWorker(Place place) {
  workers_[place].use = WorkerState::Use::kDying;
  live_[place / 64] &= ~(uint64_t{1} << (place % 64));
  dying_.push_back(place);
}

uint64_t PrefixIndex::HoldersOf(uint64_t key) const {
  const BlockSlot* slot = blocks_.Find(key, [&](const BlockSlot& s) { return s.key == key; });
  return slot == nullptr ? 0 : slot->workers;
}

void PrefixIndex::Match(std::span<const uint64_t> chain, std::vector<int32_t>* depths) const {
  depths->assign(workers_.size(), 0);
  for (uint32_t group = 0; group < live_.size() && !chain.empty(); ++group) {
    int32_t* const group_depths = depths->data() + group * 64;
    auto leave = [&](uint64_t leaving, size_t depth) {
      for (; leaving != 0; leaving &= leaving - 1) {
        group_depths[std::countr_zero(leaving)] = static_cast<int32_t>(depth);
      }
    };
    uint64_t holders = live_[group] & HoldersOf(BlockKey(chain[0], group));
    if (holders == 0) continue;
    for (size_t i = kStride; i < chain.size(); i += kStride) {
      blocks_.Prefetch(BlockKey(chain[i], group));
    }
    size_t i = 1;  // `holders` have all before it
    while (i < chain.size() && holders != 0) {
      const size_t last = std::min(i + kStride, chain.size()) - 1;
      // Who holds a block holds what it hangs on: leaves are dropped first.
      if ((holders & ~HoldersOf(BlockKey(chain[last], group))) == 0) {
        i = last + 1;
        continue;
      }
      for (size_t j = i; j < last; ++j) blocks_.Prefetch(BlockKey(chain[j], group));
      for (; i <= last; ++i) {
        const uint64_t here = HoldersOf(BlockKey(chain[i], group));
        leave(holders & ~here, i);
        holders &= here;
      }
    }
    leave(holders, chain.size());
  }
}

PrefixIndex::PairSlot* PrefixIndex::FindPair(uint64_t key, Place worker) const {
  const uint64_t hash = PairHash(key, worker);
  const auto tag = static_cast<uint32_t>(hash >> 20);
  return pair_table_.Find(hash, [&](const PairSlot& slot) {
    if (slot.tag != tag) return false;
    const Pair& pair = At(slot.pair);
    return pair.block == key && pair.worker == worker;
  });
}

void PrefixIndex::Unlink(uint32_t index) {
  Pair& pair = At(index);
  WorkerState& worker = workers_[pair.worker];
  (pair.before != 0 ? At(pair.before).after : worker.newest) = pair.after;
  (pair.after != 0 ? At(pair.after).before : worker.oldest) = pair.before;
}

void PrefixIndex::LinkNewest(uint32_t index) {
  Pair& pair = At(index);
  WorkerState& worker = workers_[pair.worker];
  pair.used = clock_;
  pair.before = 0;
  pair.after = worker.newest;
  (worker.newest != 0 ? At(worker.newest).before : worker.oldest) = index;
  worker.newest = index;
}

uint32_t PrefixIndex::TakePair() {
  ++pairs_used_;
  if (free_pair_ != 0) {
    const uint32_t index = free_pair_;
    free_pair_ = At(index).after;
    return index;
  }
  if (next_pair_ / kChunk >= chunks_.size()) chunks_.push_back(std::make_unique<Pair[]>(kChunk));
  return next_pair_++;
}

void PrefixIndex::Drop(uint32_t index) {
  Pair& pair = At(index);
  const uint64_t key = pair.block;
  if (BlockSlot* slot = blocks_.Find(key, [&](const BlockSlot& s) { return s.key == key; })) {
    slot->workers &= ~(uint64_t{1} << (pair.worker % 64));
    if (slot->workers == 0) blocks_.Erase(*this, slot);
  }
  if (PairSlot* slot = FindPair(key, pair.worker)) pair_table_.Erase(*this, slot);
  Unlink(index);
  --workers_[pair.worker].blocks;
  pair.after = free_pair_;
  free_pair_ = index;
  --pairs_used_;
}

void PrefixIndex::Reclaim(size_t count) {
  while (!dying_.empty()) {
    const Place place = dying_.back();
    for (; workers_[place].oldest != 0; --count) {
      if (count == 0) return;
      Drop(workers_[place].oldest);
    }
    workers_[place].use = WorkerState::Use::kFree;
    free_places_.push_back(place);
    dying_.pop_back();
  }
}

void PrefixIndex::EvictOldest() {
  WorkerState* victim = nullptr;
  uint32_t greatest_age = 0;
  for (WorkerState& worker : workers_) {
    if (worker.oldest == 0) continue;
    const uint32_t age = clock_ - At(worker.oldest).used;
    if (victim == nullptr || age > greatest_age) {
      victim = &worker;
      greatest_age = age;
    }
  }
  if (victim == nullptr) return;
  const uint32_t old = greatest_age - greatest_age / 16;
  for (int i = 0; i < kEvictAtOnce && victim->oldest != 0; ++i) {
    if (clock_ - At(victim->oldest).used < old) break;
    Drop(victim->oldest);
    ++evictions_;
  }
}

void PrefixIndex::Insert(Place place, std::span<const uint64_t> chain) {
  WorkerState& worker = workers_[place];
  if (!dying_.empty()) Reclaim(2 * chain.size() + 1);
  size_t fits = max_pairs_ / 2;
  if (worker.capacity > 0) fits = std::min(fits, static_cast<size_t>(worker.capacity));
  chain = chain.first(std::min(chain.size(), fits));
  ++clock_;
  const uint32_t group = place / 64;
  const uint64_t bit = uint64_t{1} << (place % 64);
  auto prefetch = [&](size_t i) {
    const uint64_t key = BlockKey(chain[i], group);
    blocks_.Prefetch(key);
    pair_table_.Prefetch(PairHash(key, place));
  };
  for (size_t i = chain.size(); i > chain.size() - std::min(kPrefetchAhead, chain.size()); --i) {
    prefetch(i - 1);
  }
  // From the end, so that leaves are older than what they hang on.
  for (size_t i = chain.size(); i-- > 0;) {
    if (i >= kPrefetchAhead) prefetch(i - kPrefetchAhead);
    const uint64_t key = BlockKey(chain[i], group);
    if (const PairSlot* known = FindPair(key, place)) {
      const uint32_t index = known->pair;
      Unlink(index);
      LinkNewest(index);
      continue;
    }
    while (pairs_used_ >= max_pairs_) dying_.empty() ? EvictOldest() : Reclaim(64);
    const uint32_t index = TakePair();
    At(index) = Pair{.block = key, .worker = place};
    LinkNewest(index);
    ++worker.blocks;
    const uint64_t hash = PairHash(key, place);
    pair_table_.Insert(*this, hash, {index, static_cast<uint32_t>(hash >> 20)});
    if (BlockSlot* slot = blocks_.Find(key, [&](const BlockSlot& s) { return s.key == key; })) {
      slot->workers |= bit;
    } else {
      blocks_.Insert(*this, key, {key, bit});
    }
  }
  while (worker.capacity > 0 && worker.blocks > worker.capacity) {
    Drop(worker.oldest);
    ++evictions_;
  }
}

void PrefixIndex::Remove(Place worker, uint64_t block) {
  if (const PairSlot* slot = FindPair(BlockKey(block, worker / 64), worker)) Drop(slot->pair);
}

size_t PrefixIndex::bytes() const {
  return blocks_.bytes() + pair_table_.bytes() + chunks_.size() * kChunk * sizeof(Pair) +
         workers_.size() * sizeof(WorkerState);
}

}  // namespace portico::router
