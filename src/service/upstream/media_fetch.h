// The fetching of media that a request names by its address.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/cpu_pool.h"
#include "base/status.h"
#include "net/loop/shard.h"
#include "service/upstream/media_rules.h"

namespace portico {

// On a shard. Destroying it ends the work.
class MediaFetch {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  using Done = std::function<void(StatusOr<Bytes>)>;

  // Calls `done` once, never from within this; it may destroy this. INVALID_ARGUMENT, a sentence without
  // its beginning: refused, or nothing of the rules' kind is there. RESOURCE_EXHAUSTED: kMost are
  // fetched, kMostHeldBytes are held, or the pool is full. `pool` reads files. `rules` outlive it.
  static std::unique_ptr<MediaFetch> Start(net::Shard& shard, CpuPool& pool,
                                           const MediaRules& rules, MediaUrl url, Done done);
  virtual ~MediaFetch() = default;

  // Of all shards.
  static int Running();
  static constexpr int kMost = 64;
  // Of what has been fetched by all shards, while anyone has it: a request whose engine is not ready for it, for one.
  static size_t Held();
  static constexpr size_t kMostHeldBytes = size_t{1} << 30;
};

}  // namespace portico
