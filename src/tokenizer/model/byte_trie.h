// A trie over bytes, for finding every token that begins at a place of a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/cache/hash.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// Children are found in one hash table; a walk costs one probe a byte. Filled by Add(), then read by any thread.
class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNoNode = UINT32_MAX;

  ByteTrie() : values_(1, -1), slots_(64) {}

  // At most 2^24 nodes in all; false once that is reached. A key added twice keeps the later value.
  bool Add(std::string_view key, TokenId value) {
    uint32_t node = kRoot;
    for (char c : key) {
      auto label = static_cast<unsigned char>(c);
      size_t at = Find(node, label);
      if (slots_[at].child == kNoNode) {
        if (values_.size() >= kMaxNodes) return false;
        if (values_.size() * 2 >= slots_.size()) {
          Grow();
          at = Find(node, label);
        }
        slots_[at] = {node << 8 | label, static_cast<uint32_t>(values_.size())};
        values_.push_back(-1);
      }
      node = slots_[at].child;
    }
    values_[node] = value;
    return true;
  }

  uint32_t Child(uint32_t node, unsigned char label) const {
    return slots_[Find(node, label)].child;
  }
  // The key that ends at this node, or -1.
  TokenId Value(uint32_t node) const { return values_[node]; }

 private:
  static constexpr size_t kMaxNodes = size_t{1} << 24;

  struct Slot {
    uint32_t key = 0;
    uint32_t child = kNoNode;
  };

  size_t Find(uint32_t node, unsigned char label) const {
    uint32_t key = node << 8 | label;
    size_t mask = slots_.size() - 1;
    size_t at = (key * uint64_t{0x9E3779B97F4A7C15u} >> 20) & mask;
    while (slots_[at].child != kNoNode && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.child != kNoNode) slots_[Find(s.key >> 8, static_cast<unsigned char>(s.key))] = s;
    }
  }

  std::vector<TokenId> values_;
  std::vector<Slot> slots_;
};

}  // namespace portico::tokenizer
