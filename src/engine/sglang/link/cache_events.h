// What SGLang publishes of its prefix cache, into the hub from which this process publishes it.
#pragma once

#include <memory>

#include "engine/kv_events.h"
#include "engine/kv_feed/kv_feed.h"
#include "engine/sglang/launch/facts.h"

namespace portico::sglang {

// Until the feed is destroyed. `hub` outlives it. What is lost on the way is told as clearing, so that nobody believes what
// is not true. UNAVAILABLE: an address that cannot be connected to.
StatusOr<std::unique_ptr<KvFeed>> FollowCache(const Facts& facts, KvEventHub* hub);

}  // namespace portico::sglang
