#include "tokenizer/piece_cache.h"

#include <algorithm>

namespace portico::tokenizer {

PieceCache* PieceCache::OfThread(uint64_t encoder) {
  struct Entry {
    uint64_t encoder;
    std::unique_ptr<PieceCache> cache;
  };
  constexpr size_t kKept = 3;
  thread_local std::vector<Entry> entries;  // the one used last in front
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].encoder != encoder) continue;
    if (i > 0)
      std::rotate(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(i),
                  entries.begin() + static_cast<ptrdiff_t>(i) + 1);
    return entries[0].cache.get();
  }
  if (entries.size() == kKept) entries.pop_back();
  entries.insert(entries.begin(), Entry{encoder, std::make_unique<PieceCache>()});
  return entries[0].cache.get();
}

}  // namespace portico::tokenizer
