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
  for (const auto& media : wanted) made_.push_back(*media);
}

size_t MediaFetches::Left(MediaKind kind) const {
  size_t left = limits_.Of(kind).total_bytes;
  for (const MediaItem& item : made_[prompt_].items) {
    if (item.kind == kind && item.bytes != nullptr) left -= std::min(left, item.bytes->size());
  }
  return left;
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
  const MediaItem& item = made_[prompt_].items[item_];
  rules_ = limits_.RulesOf(item.kind, Left(item.kind));
  auto url = ReadMediaUrl(rules_, item.url);
  if (!url.ok()) return OnFetched(url.status());
  fetch_ = MediaFetch::Start(shard_, pool_, rules_, *std::move(url),
                             [this](auto bytes) { OnFetched(std::move(bytes)); });
}

void MediaFetches::OnFetched(StatusOr<MediaFetch::Bytes> bytes) {
  MediaItem& item = made_[prompt_].items[item_];
  if (!bytes.ok()) {
    return Finish(Error(bytes.status().code(),
                        fmt::format("{} {}", item.place, MessageOf(bytes.status())), item.field));
  }
  item.bytes = *std::move(bytes);
  item.url.clear();
  Next();
}

// The last that this does.
void MediaFetches::Finish(StatusOr<List> result) {
  if (const Done done = std::exchange(done_, nullptr)) done(std::move(result));
}

}  // namespace portico
