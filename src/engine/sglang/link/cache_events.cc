#include "engine/sglang/link/cache_events.h"

#include <utility>
#include <vector>

#include "base/log.h"

namespace portico::sglang {
namespace {

class ToHub final : public KvFeedListener {
 public:
  explicit ToHub(KvEventHub* hub) : hub_(*hub) {}

  KvWish OnKvEvents(KvEventBatch batch, bool reset) override {
    // Before the first one nothing was told.
    if (reset && std::exchange(told_, true)) {
      KvEventBatch cleared;
      cleared.timestamp = static_cast<double>(UnixSeconds());
      cleared.events.emplace_back();
      hub_.Publish(std::move(cleared));
    }
    if (!reset && !batch.events.empty()) hub_.Publish(std::move(batch));
    return KvWish::kMore;
  }
  void OnKvFault(std::string_view why) override {
    if (!std::exchange(said_, true)) LogWarning("SGLang's KV-cache events: {}", why);
  }

 private:
  KvEventHub& hub_;
  bool told_ = false;
  bool said_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<KvFeed>> FollowCache(const Facts& facts, KvEventHub* hub) {
  std::vector<KvPublisher> ranks;
  for (const KvEventAddress& address : facts.kv_events) {
    const auto rank = static_cast<int32_t>(ranks.size());
    ranks.push_back({.events = address.endpoint,
                     .topic = address.topic,
                     .replay = address.replay,
                     .rank = facts.kv_events.size() > 1 ? rank : -1});
  }
  auto feed = std::make_unique<KvFeed>();
  PORTICO_RETURN_IF_ERROR(feed->Follow(ranks, std::make_unique<ToHub>(hub)).status());
  return feed;
}

}  // namespace portico::sglang
