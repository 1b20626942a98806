#include "tokenizer/vocabulary.h"

#include <algorithm>

#include "base/stable_sort.h"
#include "tokenizer/hash.h"

namespace portico::tokenizer {
namespace {

constexpr size_t kMinSlots = 64;
// How many times more ids than tokens the table by id may have.
constexpr size_t kMaxSparseness = 8;

}  // namespace

void Vocabulary::Reserve(size_t tokens, size_t bytes) {
  entries_.reserve(tokens);
  text_.reserve(bytes);
  size_t slots = kMinSlots;
  while (slots < tokens * 2) slots *= 2;
  if (slots > slots_.size()) Grow(slots);
}

void Vocabulary::Grow(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    slots_[Slot(Text(entries_[i]))] = static_cast<uint32_t>(i + 1);
  }
}

size_t Vocabulary::Slot(std::string_view token) const {
  size_t mask = slots_.size() - 1;
  size_t slot = HashBytes(token) & mask;
  while (slots_[slot] != 0 && Text(entries_[slots_[slot] - 1]) != token) slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::Add(std::string_view token, TokenId id, bool keep_old_id) {
  if ((entries_.size() + 1) * 2 > slots_.size()) Grow(std::max(kMinSlots, slots_.size() * 2));
  size_t slot = Slot(token);
  if (slots_[slot] != 0 && !keep_old_id) {
    entries_[slots_[slot] - 1].id = id;
    return;
  }
  entries_.push_back(
      {static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(token.size()), id});
  text_.append(token);
  slots_[slot] = static_cast<uint32_t>(entries_.size());
}

void Vocabulary::Seal() {
  text_.shrink_to_fit();
  for (const Entry& e : entries_) max_id_ = std::max(max_id_, e.id);
  size_t limit = static_cast<size_t>(max_id_ + int64_t{1});
  if (limit <= entries_.size() * kMaxSparseness + 1024) {
    dense_.assign(limit, 0);
    for (size_t i = 0; i < entries_.size(); ++i) {
      dense_[static_cast<size_t>(entries_[i].id)] = static_cast<uint32_t>(i + 1);
    }
    return;
  }
  for (uint32_t i = 0; i < entries_.size(); ++i) by_id_.push_back(i);
  StableSort(&by_id_, [this](uint32_t a, uint32_t b) { return entries_[a].id < entries_[b].id; });
}

std::optional<TokenId> Vocabulary::Find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  uint32_t entry = slots_[Slot(token)];
  if (entry == 0) return std::nullopt;
  return entries_[entry - 1].id;
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
