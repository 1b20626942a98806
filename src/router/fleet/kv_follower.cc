#include "router/fleet/kv_follower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"

namespace portico::router {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);

std::vector<KvPublisher> PublishersOf(const WorkerSpec& spec, const KvAddress& address) {
  const bool one = spec.dp_rank >= 0 || address.ranks == 1;
  std::vector<KvPublisher> publishers;
  for (int i = 0; i < (one ? 1 : address.ranks); ++i) {
    const int rank = std::max(spec.dp_rank, i);
    publishers.push_back(
        {.events = KvEndpointOf(address.endpoint, spec.host, rank),
         .topic = address.topic,
         .replay = address.replay.empty() ? "" : KvEndpointOf(address.replay, spec.host, rank),
         .rank = one ? -1 : rank});
  }
  return publishers;
}

}  // namespace

class KvFollower::Listener final : public KvFeedListener {
 public:
  Listener(const WorkerPtr& worker, bool one_rank, const KvFollowerEvents& events,
           GatewayMetrics& metrics)
      : worker_(worker), one_rank_(one_rank), events_(events), metrics_(metrics) {}

  KvWish OnKvEvents(KvEventBatch batch, bool reset) override {
    const WorkerPtr worker = worker_.lock();
    if (worker == nullptr) return KvWish::kNothing;
    if (one_rank_) batch.rank = -1;
    if (reset && !std::exchange(said_, true)) {
      LogInfo("worker {} {} reports what its cache holds", worker->id(), worker->url());
    }
    return events_.on_events(*worker, batch, reset);
  }
  void OnKvLost() override {
    if (const WorkerPtr worker = worker_.lock()) events_.on_lost(*worker);
  }
  void OnKvFault(std::string_view why) override {
    metrics_.kv_event_faults.Add();
    const WorkerPtr worker = worker_.lock();
    if (worker == nullptr || std::exchange(said_fault_, true)) return;
    LogWarning("worker {} {}: its KV-cache events: {}; more of it is only counted", worker->id(),
               worker->url(), why);
  }

 private:
  const std::weak_ptr<Worker> worker_;
  const bool one_rank_;
  const KvFollowerEvents& events_;
  GatewayMetrics& metrics_;
  bool said_ = false;
  bool said_fault_ = false;
};

KvFollower::KvFollower(const GatewayOptions& options, GatewayMetrics& metrics,
                       KvFollowerEvents events)
    : options_(options), metrics_(metrics), events_(std::move(events)) {}

KvFollower::~KvFollower() = default;

KvAddress KvFollower::AddressOf(const Worker& worker) const {
  const WorkerSpec& spec = worker.spec();
  if (worker.protocol() != Protocol::kHttp) return {};
  // Until it is known how many ranks its server has.
  if (options_.dp_aware && spec.dp_rank < 0) return {};
  if (!spec.kv_events.empty()) return spec.kv_events;
  return options_.kv_events.empty() ? worker.kv_address() : options_.kv_events;
}

void KvFollower::Keep(const WorkerSet& set, uint64_t version, bool wanted) {
  const TimePoint now = Clock::now();
  if (now < next_look_ && version == version_) return;
  next_look_ = now + kBetweenLooks;
  version_ = version;
  absl::flat_hash_map<uint64_t, Followed> next;
  for (const WorkerPtr& worker : set.workers()) {
    const KvAddress address = wanted ? AddressOf(*worker) : KvAddress{};
    if (address.empty()) continue;
    const auto found = followed_.find(worker->number());
    if (found != followed_.end() && found->second.address == address) {
      next.emplace(found->first, std::move(found->second));
      followed_.erase(found);
    } else {
      if (found != followed_.end()) {
        Unfollow(found->second);
        followed_.erase(found);
      }
      next.emplace(worker->number(), Follow(worker, address));
    }
  }
  for (const auto& [number, gone] : followed_) Unfollow(gone);
  followed_ = std::move(next);
}

KvFollower::Followed KvFollower::Follow(const WorkerPtr& worker, const KvAddress& address) {
  if (feed_ == nullptr) feed_ = std::make_unique<KvFeed>();
  const std::vector<KvPublisher> publishers = PublishersOf(worker->spec(), address);
  const auto subscription = feed_->Follow(
      publishers, std::make_unique<Listener>(worker, publishers.size() == 1, events_, metrics_));
  if (!subscription.ok()) {
    LogWarning("worker {} {}: its KV-cache events are not followed: {}", worker->id(),
               worker->url(), MessageOf(subscription.status()));
  }
  return {.worker = worker, .address = address, .subscription = subscription.value_or(0)};
}

void KvFollower::Unfollow(const Followed& followed) {
  if (followed.subscription == 0) return;
  feed_->Unfollow(followed.subscription);
  if (const WorkerPtr worker = followed.worker.lock()) events_.on_lost(*worker);
}

}  // namespace portico::router
