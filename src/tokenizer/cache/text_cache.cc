#include "tokenizer/cache/text_cache.h"

#include <algorithm>

namespace portico::tokenizer {

void TextCache::Store(const char* text, size_t bytes, size_t left, uint64_t hash,
                      std::span<const TokenId> ids, std::span<const uint32_t> places) {
  const size_t kept = bytes + std::min(left, kBehind);
  const size_t words = kHeadWords + ids.size() + TextWords(kept) + places.size();
  const size_t room = kRingWords - head_ % kRingWords;
  if (room < words) head_ += room;  // an entry lies in one piece
  uint32_t* entry = ring_.data() + head_ % kRingWords;
  entry[0] = static_cast<uint32_t>(kept);
  entry[1] = static_cast<uint32_t>(bytes);
  entry[2] = static_cast<uint32_t>(ids.size());
  entry[3] = static_cast<uint32_t>(places.size());
  uint32_t* at = entry + kHeadWords;
  if (!ids.empty()) std::memcpy(at, ids.data(), ids.size_bytes());
  at += ids.size();
  std::memcpy(at, text, kept);
  at += TextWords(kept);
  if (!places.empty()) std::memcpy(at, places.data(), places.size_bytes());
  Slot* set = SetOf(hash);
  for (size_t way = kWays - 1; way > 0; --way) set[way].stored = set[way - 1].stored;
  set[0].stored = head_ << kTagBits | TagOf(hash);
  head_ += words;
}

}  // namespace portico::tokenizer
