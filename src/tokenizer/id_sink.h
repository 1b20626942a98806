// Appends token ids to a vector with room to spare, so that an id costs a store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "tokenizer/piece_cache.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// The vector has its right size again once the sink is gone.
class IdSink {
 public:
  explicit IdSink(std::vector<TokenId>* ids) : ids_(ids), size_(ids->size()) {}
  ~IdSink() { ids_->resize(size_); }
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;

  size_t size() const { return size_; }
  // The ids from the one of that number on, valid until the next Append().
  std::span<const TokenId> From(size_t first) const {
    return {ids_->data() + first, size_ - first};
  }

  void Append(TokenId id) {
    if (ids_->size() == size_) Grow(1);
    (*ids_)[size_++] = id;
  }
  void Append(const TokenId* from, size_t count) {
    if (ids_->size() - size_ < count) Grow(count);
    if (count > 0) std::memcpy(ids_->data() + size_, from, count * sizeof(TokenId));
    size_ += count;
  }
  // Appends the `count` ids at `from`, of which kShortIds may be read in any case.
  void AppendShort(const TokenId* from, size_t count) {
    if (ids_->size() - size_ < PieceCache::kShortIds) Grow(PieceCache::kShortIds);
    std::memcpy(ids_->data() + size_, from, PieceCache::kShortIds * sizeof(TokenId));
    size_ += count;
  }

 private:
  void Grow(size_t count) {
    constexpr size_t kStep = 1024;
    ids_->resize(size_ + std::max({count, kStep, size_ / 2}));
  }

  std::vector<TokenId>* ids_;
  size_t size_;
};

}  // namespace portico::tokenizer
