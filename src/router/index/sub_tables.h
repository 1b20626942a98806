// A hash table in 1,024 parts, each with linear probing and growth of its own, so that no insertion
// ever moves more than a thousandth of the entries: with 10 million of them the longest pause is about
// 0.1 ms, where one table would stop for half a second. Deletion shifts entries back; there are no
// tombstones. Not thread safe.
//
// Traits: Slot (trivial; all bytes 0: empty), Empty(slot), HashOf(context, slot) with well mixed bits,
// where `context` is what the owner passes to resolve indirect slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace portico::router {

template <typename Traits>
class SubTables {
 public:
  using Slot = typename Traits::Slot;
  static constexpr int kPartBits = 10;
  // Full at 3/4, so after growth at least 3/8: what a slot costs at most is 8/3 of its size.
  static constexpr double kMinLoad = 0.375;

  SubTables() : parts_(size_t{1} << kPartBits) {}

  void Prefetch(uint64_t hash) const {
    const Part& part = PartOf(hash);
    __builtin_prefetch(part.slots.get() + (hash & part.mask));
  }

  // The slot for which `matches` says yes, or null. Valid until the next insertion or deletion.
  template <typename Matches>
  Slot* Find(uint64_t hash, Matches matches) const {
    const Part& part = PartOf(hash);
    if (part.slots == nullptr) return nullptr;
    for (uint32_t i = static_cast<uint32_t>(hash) & part.mask;; i = (i + 1) & part.mask) {
      Slot& slot = part.slots.get()[i];
      if (Traits::Empty(slot)) return nullptr;
      if (matches(slot)) return &slot;
    }
  }

  // Adds a slot that is not there.
  template <typename Context>
  Slot* Insert(const Context& context, uint64_t hash, const Slot& slot) {
    Part& part = PartOf(hash);
    if (part.slots == nullptr) {
      Allocate(&part, kFirstSlots);
    } else if ((part.size + 1) * 4 > (part.mask + 1) * 3) {
      Grow(context, &part);
    }
    ++part.size;
    ++size_;
    return Place(part, hash, slot);
  }

  template <typename Context>
  void Erase(const Context& context, Slot* slot) {
    Part& part = PartOf(Traits::HashOf(context, *slot));
    uint32_t hole = static_cast<uint32_t>(slot - part.slots.get());
    for (uint32_t i = (hole + 1) & part.mask;; i = (i + 1) & part.mask) {
      const Slot& next = part.slots.get()[i];
      if (Traits::Empty(next)) break;
      const uint32_t home = static_cast<uint32_t>(Traits::HashOf(context, next)) & part.mask;
      // `next` may move into the hole unless its home lies behind the hole.
      if (((i - home) & part.mask) >= ((i - hole) & part.mask)) {
        part.slots.get()[hole] = next;
        hole = i;
      }
    }
    part.slots.get()[hole] = Slot{};
    --part.size;
    --size_;
  }

  size_t size() const { return size_; }
  size_t bytes() const { return bytes_ + parts_.size() * sizeof(Part); }

 private:
  static constexpr uint32_t kFirstSlots = 16;
  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };
  struct Part {
    std::unique_ptr<Slot, Free> slots;
    uint32_t mask = 0;
    uint32_t size = 0;
  };

  Part& PartOf(uint64_t hash) { return parts_[hash >> (64 - kPartBits)]; }
  const Part& PartOf(uint64_t hash) const { return parts_[hash >> (64 - kPartBits)]; }

  void Allocate(Part* part, uint32_t slots) {
    auto* memory = static_cast<Slot*>(std::calloc(slots, sizeof(Slot)));
    if (memory == nullptr) throw std::bad_alloc();
    part->slots.reset(memory);
    part->mask = slots - 1;
    bytes_ += slots * sizeof(Slot);
  }

  static Slot* Place(Part& part, uint64_t hash, const Slot& slot) {
    uint32_t i = static_cast<uint32_t>(hash) & part.mask;
    while (!Traits::Empty(part.slots.get()[i])) i = (i + 1) & part.mask;
    part.slots.get()[i] = slot;
    return part.slots.get() + i;
  }

  template <typename Context>
  void Grow(const Context& context, Part* part) {
    const std::unique_ptr<Slot, Free> old = std::move(part->slots);
    const uint32_t slots = part->mask + 1;
    Allocate(part, slots * 2);
    bytes_ -= slots * sizeof(Slot);
    for (uint32_t i = 0; i < slots; ++i) {
      const Slot& slot = old.get()[i];
      if (!Traits::Empty(slot)) Place(*part, Traits::HashOf(context, slot), slot);
    }
  }

  std::vector<Part> parts_;
  size_t size_ = 0;
  size_t bytes_ = 0;
};

}  // namespace portico::router
