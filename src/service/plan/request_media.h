// From what a client names as an image to its bytes. What comes with the request is decoded when it is planned; the rest is
// fetched on a shard before it runs (upstream/media_fetches.h).
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "message/request_extras.h"
#include "message/request_media.h"
#include "service/upstream/media_rules.h"

namespace portico {

struct MediaLimits {
  MediaLimits() { rules.kind = MediaRules::Kind::kImage; }

  MediaRules rules;
  size_t max_images = 16;  // of a prompt
  // Of all of them, in bytes: together no more than a few large ones.
  size_t max_total_bytes = size_t{32} << 20;
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
