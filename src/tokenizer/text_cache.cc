#include "tokenizer/text_cache.h"

namespace portico::tokenizer {

void TextCache::Store(const char* text, size_t bytes, uint64_t hash, std::span<const TokenId> ids,
                      std::span<const uint32_t> places) {
  const size_t words = kHeadWords + ids.size() + TextWords(bytes) + places.size();
  size_t left = kRingWords - head_ % kRingWords;
  if (left < words) head_ += left;  // an entry lies in one piece
  uint32_t* entry = ring_.data() + head_ % kRingWords;
  entry[0] = static_cast<uint32_t>(bytes);
  entry[1] = static_cast<uint32_t>(ids.size());
  entry[2] = static_cast<uint32_t>(places.size());
  uint32_t* at = entry + kHeadWords;
  if (!ids.empty()) std::memcpy(at, ids.data(), ids.size_bytes());
  at += ids.size();
  std::memcpy(at, text, bytes + kBehind);
  at += TextWords(bytes);
  if (!places.empty()) std::memcpy(at, places.data(), places.size_bytes());
  Slot* set = SetOf(hash);
  for (size_t way = kWays - 1; way > 0; --way) set[way].stored = set[way - 1].stored;
  set[0].stored = head_ << kTagBits | TagOf(hash);
  head_ += words;
}

}  // namespace portico::tokenizer
