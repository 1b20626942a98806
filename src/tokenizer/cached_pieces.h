// The ids of a piece, from the thread's cache or computed and put there.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/id_sink.h"
#include "tokenizer/piece_cache.h"

namespace portico::tokenizer {

// Appends the ids of `piece`, which is not empty; `readable` bytes from its begin on may be read. `encode(piece, ids)`
// appends them to an empty vector, or returns false, as this does then.
template <typename Encode>
[[gnu::always_inline]] inline bool AppendCached(std::string_view piece, size_t readable,
                                                PieceCache* cache, IdSink* out, Encode encode) {
  thread_local std::vector<TokenId> ids;
  if (piece.size() <= PieceCache::kShortBytes) {
    PieceCache::Key key = PieceCache::KeyOf(piece.data(), piece.size(), readable);
    if (const PieceCache::Short* hit = cache->FindShort(key)) [[likely]] {
      out->AppendShort(hit->ids, hit->count);
      return true;
    }
    ids.clear();
    if (!encode(piece, &ids)) return false;
    out->Append(ids.data(), ids.size());
    if (!ids.empty() && ids.size() <= PieceCache::kShortIds) {
      cache->AddShort(key, ids.data(), ids.size());
    }
    return true;
  }
  uint64_t hash = 0;
  if (piece.size() <= PieceCache::kLongBytes) {
    hash = HashBytes(piece);
    size_t count = 0;
    if (const TokenId* hit = cache->FindLong(piece, hash, &count)) {
      out->Append(hit, count);
      return true;
    }
  }
  ids.clear();
  if (!encode(piece, &ids)) return false;
  out->Append(ids.data(), ids.size());
  if (piece.size() <= PieceCache::kLongBytes) cache->AddLong(piece, hash, ids.data(), ids.size());
  return true;
}

}  // namespace portico::tokenizer
