// The fetching of all that the prompts of one request name by address.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/cpu_pool.h"
#include "base/status.h"
#include "message/request_media.h"
#include "net/loop/shard.h"
#include "service/plan/request_media.h"
#include "service/upstream/media_fetch.h"

namespace portico {

// On a shard, one after the other. Destroying it ends the work.
class MediaFetches {
 public:
  using List = std::vector<std::shared_ptr<const RequestMedia>>;  // one a prompt
  using Done = std::function<void(StatusOr<List>)>;

  // Calls `done` once, never from within this, with every item's bytes, or with what is wrong with one; it may destroy
  // this. At least one item has none.
  static std::unique_ptr<MediaFetches> Start(net::Shard& shard, CpuPool& pool, MediaLimits limits,
                                             const List& wanted, Done done);

 private:
  MediaFetches(net::Shard& shard, CpuPool& pool, MediaLimits limits, const List& wanted, Done done);
  void Next();
  // Bytes that the prompt may still have of that kind.
  size_t Left(MediaKind kind) const;
  void OnFetched(StatusOr<MediaFetch::Bytes> bytes);
  void Finish(StatusOr<List> result);

  net::Shard& shard_;
  CpuPool& pool_;
  MediaLimits limits_;
  std::vector<RequestMedia> made_;
  Done done_;
  size_t prompt_ = 0;
  size_t item_ = 0;
  MediaRules rules_;  // of the fetch that goes on
  std::unique_ptr<MediaFetch> fetch_;
};

}  // namespace portico
