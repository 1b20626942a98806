#include "service/upstream/media_fetches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace portico {

std::unique_ptr<MediaFetches> MediaFetches::Start(net::Shard& shard, CpuPool& pool,
                                                  MediaLimits limits, const List& wanted,
                                                  Done done) {
  std::unique_ptr<MediaFetches> fetches(
      new MediaFetches(shard, pool, std::move(limits), wanted, std::move(done)));
  fetches->Next();
  return fetches;
}

MediaFetches::MediaFetches(net::Shard& shard, CpuPool& pool, MediaLimits limits, const List& wanted,
                           Done done)
    : shard_(shard), pool_(pool), limits_(std::move(limits)), done_(std::move(done)) {
  for (const auto& media : wanted) {
    made_.push_back(*media);
    for (const MediaItem& item : media->items) {
      if (item.bytes != nullptr) total_ += item.bytes->size();
    }
  }
}

void MediaFetches::Next() {
  while (prompt_ < made_.size()) {
    std::vector<MediaItem>& items = made_[prompt_].items;
    while (item_ < items.size() && items[item_].bytes != nullptr) ++item_;
    if (item_ < items.size()) break;
    item_ = 0;
    ++prompt_;
  }
  if (prompt_ == made_.size()) {
    List list;
    for (RequestMedia& media : made_) {
      list.push_back(std::make_shared<const RequestMedia>(std::move(media)));
    }
    return Finish(std::move(list));
  }
  const RequestMedia& media = made_[prompt_];
  const MediaItem& item = media.items[item_];
  auto url = ReadMediaUrl(limits_.rules, item.url);
  if (!url.ok()) return OnFetched(url.status());
  const size_t left = limits_.max_total_bytes - std::min(total_, limits_.max_total_bytes);
  limits_.rules.max_bytes = std::min(limits_.rules.max_bytes, left);
  fetch_ = MediaFetch::Start(shard_, pool_, limits_.rules, *std::move(url),
                             [this](auto bytes) { OnFetched(std::move(bytes)); });
}

void MediaFetches::OnFetched(StatusOr<MediaFetch::Bytes> bytes) {
  RequestMedia& media = made_[prompt_];
  MediaItem& item = media.items[item_];
  if (!bytes.ok()) {
    return Finish(Error(bytes.status().code(),
                        fmt::format("{} {}", item.place, MessageOf(bytes.status())), media.field));
  }
  total_ += (*bytes)->size();
  item.bytes = *std::move(bytes);
  item.url.clear();
  Next();
}

// The last that this does.
void MediaFetches::Finish(StatusOr<List> result) {
  if (const Done done = std::exchange(done_, nullptr)) done(std::move(result));
}

}  // namespace portico
