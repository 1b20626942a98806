// A trie over bytes for tables that are walked all the time: one look at one place a byte, and the nodes of a chain
// side by side. Slower to build than ByteTrie and cannot grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/compiled/stored_rows.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// A double array: the child of a node behind a byte is at the node's base xor the byte, if it names the node as its
// parent. Immutable once built.
class DoubleArray {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNoNode = UINT32_MAX;
  static constexpr size_t kMaxBytes = size_t{1} << 26;

  DoubleArray() = default;
  // Keys are not empty, at most kMaxBytes of them in all; of one key twice, either value may stay.
  explicit DoubleArray(std::vector<std::pair<std::string_view, TokenId>> keys);

  // As bytes, and back for values below `limit`; nothing where these are not such bytes. Of any bytes, walking the
  // result is safe. They are used where they lie, so they must outlive it.
  void Save(CompiledWriter* out) const { out->Rows(units_); }
  static std::optional<DoubleArray> Restore(CompiledReader* in, TokenId limit);

  uint32_t Child(uint32_t node, unsigned char label) const {
    uint32_t at = units_[node].base ^ label;
    return units_[at].parent == node ? at : kNoNode;
  }
  // The key that ends at this node, or -1.
  TokenId Value(uint32_t node) const { return units_[node].value; }

 private:
  struct Unit {
    uint32_t base = 0;
    uint32_t parent = kNoNode;  // kNoNode: free
    TokenId value = -1;
  };
  class Builder;

  // The units that a base reaches: whole blocks, so that no label leads out of the array.
  static constexpr uint32_t kBlock = 256;

  StoredRows<Unit> units_ = StoredRows<Unit>(kBlock);
};

}  // namespace portico::tokenizer
