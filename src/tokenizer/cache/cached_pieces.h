// The ids of pieces and of stretches of text, from the thread's cache or computed and put there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/cache/hash.h"
#include "tokenizer/cache/piece_cache.h"
#include "tokenizer/cache/text_cache.h"
#include "tokenizer/fused/id_sink.h"

namespace portico::tokenizer {

// Appends the ids of `piece`, which is not empty; `readable` bytes from its begin on may be read. `encode(piece, ids)`
// appends them to an empty vector, or returns false, as this does then.
template <typename Encode>
[[gnu::always_inline]] inline bool AppendCached(std::string_view piece, size_t readable,
                                                PieceCache* cache, IdSink* out, Encode encode) {
  thread_local std::vector<TokenId> ids;
  auto append_new = [&] {
    ids.clear();
    if (!encode(piece, &ids)) return false;
    out->Append(ids.data(), ids.size());
    return true;
  };
  if (piece.size() > PieceCache::kMediumBytes) {
    if (piece.size() > PieceCache::kLongBytes) return append_new();
    const uint64_t hash = HashBytes(piece);
    size_t count = 0;
    if (const TokenId* hit = cache->FindLong(piece, hash, &count)) {
      out->Append(hit, count);
      return true;
    }
    if (!append_new()) return false;
    cache->AddLong(piece, hash, ids.data(), ids.size());
    return true;
  }
  const bool is_short = piece.size() <= PieceCache::kShortBytes;
  bool may_be_medium = !is_short;
  PieceKey key{};
  uint64_t hash = 0;
  if (is_short) {
    key = PieceKey::Of(piece.data(), piece.size(), readable);
    hash = key.Hash();
    if (const PieceCache::Short* hit = cache->FindShort(key, hash)) [[likely]] {
      if (hit->count != PieceCache::kInMedium) [[likely]] {
        out->AppendShort(hit->ids, hit->count);
        return true;
      }
      may_be_medium = true;
    }
  }
  if (may_be_medium) {
    if (const PieceCache::Medium* hit = cache->FindMedium(PieceCache::MediumKeyOf(piece))) {
      out->Append(hit->ids, hit->count);
      return true;
    }
  }
  if (!append_new()) return false;
  if (ids.empty()) return true;
  if (is_short && ids.size() <= PieceCache::kShortIds) {
    cache->AddShort(key, hash, ids.data(), ids.size());
  } else if (ids.size() <= PieceCache::kMediumIds) {
    cache->AddMedium(PieceCache::MediumKeyOf(piece), ids.data(), ids.size());
    if (is_short) cache->AddShortInMedium(key, hash);
  }
  return true;
}

// Appends the ids of `text`, stretch by stretch, and tells `places` of them. `part(p)` does so for the part that begins at
// `p` and returns its end, or null, on which this returns false. A part's end must depend on no more than what is in it
// and the TextCache::kBehind bytes behind it, or the text's end; its ids on nothing outside it, and so its places, unless
// `part` tells the PlaceSink that they do.
template <typename Places, typename Part>
[[gnu::always_inline]] inline bool AppendStretches(std::string_view text, PieceCache* cache,
                                                   IdSink* out, Places* places, Part part) {
  TextCache* texts = cache->texts();
  const char* p = text.data();
  const char* end = p + text.size();
  while (static_cast<size_t>(end - p) >= TextCache::kReadable) {
    const char* begin = p;
    const auto readable = static_cast<size_t>(end - p);
    uint64_t hash = TextCache::HashOf(p);
    TextCache::Found found = texts->Find(p, readable, hash);
    if (found.bytes > 0 && places->Copy(begin, found)) {
      out->Append(found.ids.data(), found.ids.size());
      p += found.bytes;
      continue;
    }
    const auto mark = places->BeginStretch(begin);
    size_t first = out->size();
    const size_t least = TextCache::LeastOf(readable);
    size_t length = 0;
    while (p < end && (length < least || readable < length + TextCache::kBehind)) {
      p = part(p);
      if (p == nullptr) return false;
      length = static_cast<size_t>(p - begin);
    }
    places->EndStretch(begin, p);
    out->Foresee(static_cast<size_t>(p - text.data()), readable - length);
    if (TextCache::MayStore(length, readable - length) && places->MayKeep() && texts->Seen(hash)) {
      texts->Store(begin, length, readable - length, hash, out->From(first),
                   places->Pack(mark, length));
    }
  }
  const char* begin = p;
  places->BeginStretch(begin);
  while (p < end) {
    p = part(p);
    if (p == nullptr) return false;
  }
  places->EndStretch(begin, end);
  return true;
}

}  // namespace portico::tokenizer
