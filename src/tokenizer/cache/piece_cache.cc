#include "tokenizer/cache/piece_cache.h"

#include <algorithm>
#include <atomic>

namespace portico::tokenizer {

PieceCache::PieceCache()
    : tables_(1),
      lines_(tables_[0].lines),
      mediums_(tables_[0].mediums),
      long_(tables_[0].longs),
      texts_(tables_[0].texts) {
  block_.reserve(kBlockWords);
  tables_.Touch();
}

PieceCaches::PieceCaches() {
  static std::atomic<uint64_t> next{1};
  number_ = next.fetch_add(1, std::memory_order_relaxed);
}

PieceCache* PieceCaches::OfThread() const {
  struct Entry {
    uint64_t encoder;
    std::unique_ptr<PieceCache> cache;
  };
  constexpr size_t kKept = 3;
  thread_local std::vector<Entry> entries;  // the one used last in front
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].encoder != number_) continue;
    if (i > 0)
      std::rotate(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(i),
                  entries.begin() + static_cast<ptrdiff_t>(i) + 1);
    return entries[0].cache.get();
  }
  if (entries.size() == kKept) entries.pop_back();
  entries.insert(entries.begin(), Entry{number_, std::make_unique<PieceCache>()});
  return entries[0].cache.get();
}

}  // namespace portico::tokenizer
