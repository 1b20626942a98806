#include "tokenizer/text_cache.h"

namespace portico::tokenizer {

void TextCache::Store(const char* text, size_t bytes, uint64_t hash, std::span<const TokenId> ids) {
  size_t text_words = (bytes + kBehind + sizeof(uint32_t) - 1) / sizeof(uint32_t);
  size_t words = 2 + ids.size() + text_words;
  size_t left = kRingWords - head_ % kRingWords;
  if (left < words) head_ += left;  // an entry lies in one piece
  uint32_t* entry = ring_.data() + head_ % kRingWords;
  entry[0] = static_cast<uint32_t>(bytes);
  entry[1] = static_cast<uint32_t>(ids.size());
  if (!ids.empty()) std::memcpy(entry + 2, ids.data(), ids.size_bytes());
  std::memcpy(entry + 2 + ids.size(), text, bytes + kBehind);
  Slot* set = SetOf(hash);
  for (size_t way = kWays - 1; way > 0; --way) set[way].stored = set[way - 1].stored;
  set[0].stored = head_ << kTagBits | TagOf(hash);
  head_ += words;
}

}  // namespace portico::tokenizer
