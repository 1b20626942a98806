#include "tokenizer/model/vocabulary.h"

#include <algorithm>
#include <array>

#include "base/stable_sort.h"
#include "tokenizer/cache/hash.h"

namespace portico::tokenizer {
namespace {

constexpr size_t kMinSlots = 64;
// How many times more ids than tokens the table by id may have.
constexpr size_t kMaxSparseness = 8;

// The low bits of the hash choose the slot.
uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

void Vocabulary::Reserve(size_t tokens, size_t bytes) {
  entries_.reserve(tokens);
  text_.reserve(bytes);
  size_t slots = kMinSlots;
  while (slots < tokens * 2) slots *= 2;
  if (slots > slots_.size()) Grow(slots);
}

void Vocabulary::Grow(size_t slots) {
  slots_.assign(slots, Slot{});
  for (size_t i = 0; i < entries_.size(); ++i) {
    uint64_t hash = HashBytes(Text(entries_[i]));
    slots_.Edit(SlotOf(Text(entries_[i]), hash)) = {TagOf(hash), static_cast<uint32_t>(i + 1)};
  }
}

size_t Vocabulary::SlotOf(std::string_view token, uint64_t hash) const {
  size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  uint32_t tag = TagOf(hash);
  while (slots_[slot].entry != 0 &&
         (slots_[slot].tag != tag || Text(entries_[slots_[slot].entry - 1]) != token)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void Vocabulary::Add(std::string_view token, TokenId id, bool keep_old_id) {
  if ((entries_.size() + 1) * 2 > slots_.size()) Grow(std::max(kMinSlots, slots_.size() * 2));
  uint64_t hash = HashBytes(token);
  Slot& slot = slots_.Edit(SlotOf(token, hash));
  if (slot.entry != 0 && !keep_old_id) {
    entries_.Edit(slot.entry - 1).id = id;
    return;
  }
  spellings_ += slot.entry == 0 ? 1 : 0;
  entries_.push_back(
      {static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(token.size()), id});
  text_.append(token.data(), token.size());
  slot = {TagOf(hash), static_cast<uint32_t>(entries_.size())};
}

void Vocabulary::Seal() {
  text_.shrink_to_fit();
  for (const Entry& e : entries_) max_id_ = std::max(max_id_, e.id);
  size_t limit = static_cast<size_t>(max_id_ + int64_t{1});
  if (limit <= entries_.size() * kMaxSparseness + 1024) {
    dense_.assign(limit, 0);
    for (size_t i = 0; i < entries_.size(); ++i) {
      dense_.Edit(static_cast<size_t>(entries_[i].id)) = static_cast<uint32_t>(i + 1);
    }
    return;
  }
  for (uint32_t i = 0; i < entries_.size(); ++i) by_id_.push_back(i);
  StableSort(&by_id_, [this](uint32_t a, uint32_t b) { return entries_[a].id < entries_[b].id; });
}

void Vocabulary::Save(CompiledWriter* out) const {
  out->Rows(text_);
  out->Rows(entries_);
  out->Rows(slots_);
}

std::optional<Vocabulary> Vocabulary::Restore(CompiledReader* in) {
  Vocabulary out;
  if (!in->Rows(&out.text_) || !in->Rows(&out.entries_) || !in->Rows(&out.slots_)) {
    return std::nullopt;
  }
  // Without a way out of the loops, which makes them several times faster.
  bool known = true;
  for (const Entry& e : out.entries_) {
    known &= e.id >= 0 && e.id != INT32_MAX;
    known &= uint64_t{e.offset} + e.length <= out.text_.size();
  }
  uint32_t taken = 0;
  for (const Slot& slot : out.slots_) {
    known &= slot.entry <= out.entries_.size();
    taken += slot.entry != 0 ? 1 : 0;
  }
  size_t slots = out.slots_.size();
  // A search ends at a free slot.
  if (!known || (slots & (slots - 1)) != 0 || size_t{taken} * 2 > slots) return std::nullopt;
  out.spellings_ = taken;
  out.Seal();
  return out;
}

std::optional<TokenId> Vocabulary::Find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  uint32_t entry = slots_[SlotOf(token, HashBytes(token))].entry;
  if (entry == 0) return std::nullopt;
  return entries_[entry - 1].id;
}

void Vocabulary::FindAll(std::span<const std::string_view> tokens, std::span<TokenId> ids) const {
  constexpr size_t kAtOnce = 32;
  std::array<uint64_t, kAtOnce> hashes;
  for (size_t begin = 0; begin < tokens.size(); begin += kAtOnce) {
    const size_t count = std::min(kAtOnce, tokens.size() - begin);
    if (slots_.empty()) {
      std::fill_n(ids.begin() + static_cast<ptrdiff_t>(begin), count, kNoToken);
      continue;
    }
    const size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = HashBytes(tokens[begin + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    for (size_t i = 0; i < count; ++i) {
      const uint32_t entry = slots_[hashes[i] & mask].entry;
      if (entry != 0) __builtin_prefetch(&entries_[entry - 1]);
    }
    for (size_t i = 0; i < count; ++i) {
      const uint32_t entry = slots_[hashes[i] & mask].entry;
      if (entry != 0) __builtin_prefetch(text_.data() + entries_[entry - 1].offset);
    }
    for (size_t i = 0; i < count; ++i) {
      const uint32_t entry = slots_[SlotOf(tokens[begin + i], hashes[i])].entry;
      ids[begin + i] = entry == 0 ? kNoToken : entries_[entry - 1].id;
    }
  }
}

const Vocabulary::Entry* Vocabulary::EntryOf(TokenId id) const {
  if (id < 0 || id > max_id_) return nullptr;
  if (!dense_.empty()) {
    uint32_t entry = dense_[static_cast<size_t>(id)];
    return entry == 0 ? nullptr : &entries_[entry - 1];
  }
  auto it = std::lower_bound(by_id_.begin(), by_id_.end(), id,
                             [this](uint32_t i, TokenId want) { return entries_[i].id < want; });
  return it == by_id_.end() || entries_[*it].id != id ? nullptr : &entries_[*it];
}

std::string_view Vocabulary::Spelling(TokenId id) const {
  const Entry* entry = EntryOf(id);
  return entry == nullptr ? std::string_view{} : Text(*entry);
}

}  // namespace portico::tokenizer
