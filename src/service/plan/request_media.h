// From what a client names as an image, a video or audio to its bytes. What comes with the request is decoded when it is planned; the rest is
// fetched on a shard before it runs (upstream/media_fetches.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "message/request_extras.h"
#include "message/request_media.h"
#include "service/upstream/media_rules.h"

namespace portico {

struct MediaLimits {
  // Of one kind.
  struct OfKind {
    size_t count = 0;        // of a prompt
    size_t item_bytes = 0;   // of each, still encoded
    size_t total_bytes = 0;  // of all of a prompt: together no more than a few large ones
    Duration timeout{};      // of the fetch of each
  };

  // The addresses that are looked at; what depends on the kind is not set.
  MediaRules rules;
  OfKind kinds[kMediaKinds] = {
      {16, size_t{10} << 20, size_t{32} << 20, std::chrono::seconds(20)},  // images
      {4, size_t{64} << 20, size_t{64} << 20, std::chrono::seconds(60)},   // videos
      {16, size_t{25} << 20, size_t{50} << 20, std::chrono::seconds(30)},  // audio
  };

  OfKind& Of(MediaKind kind) { return kinds[static_cast<size_t>(kind)]; }
  const OfKind& Of(MediaKind kind) const { return kinds[static_cast<size_t>(kind)]; }
  // The rules for one item, of which no more than `left` bytes are taken.
  MediaRules RulesOf(MediaKind kind, size_t left) const;
};

// Decodes `data:` URLs and bare base64, and checks the addresses of the rest, which keep their `url`. INVALID_ARGUMENT names
// the field and the place. Pure; any thread.
StatusOr<std::shared_ptr<const RequestMedia>> ReadInlineMedia(const MediaLimits& limits,
                                                              const RequestMedia& media);

// Whether some item has no bytes yet.
bool NeedsFetch(const RequestMedia& media);

// The same extras with other media.
std::shared_ptr<const RequestExtras> WithMedia(const std::shared_ptr<const RequestExtras>& extras,
                                               std::shared_ptr<const RequestMedia> media);

}  // namespace portico
