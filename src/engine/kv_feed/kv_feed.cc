#include "engine/kv_feed/kv_feed.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/kv_feed/kv_server.h"
#include "net/zmq/zmq_library.h"

namespace portico {
namespace {

constexpr size_t kManySockets = 64;
constexpr Duration kMoment = std::chrono::milliseconds(2);

}  // namespace

class KvFeed::Subscription {
 public:
  explicit Subscription(std::unique_ptr<KvFeedListener> listener)
      : listener_(std::move(listener)) {}

  Status Open(const net::ZmqContext& context, const std::vector<KvPublisher>& ranks) {
    const MutexLock lock(&mutex_);
    PORTICO_ASSIGN_OR_RETURN(server_, KvServer::Open(context, ranks, listener_.get()));
    return OkStatus();
  }
  void AddSockets(std::vector<void*>* sockets, TimePoint* deadline) {
    const MutexLock lock(&mutex_);
    server_->AddSockets(sockets);
    *deadline = std::min(*deadline, server_->deadline());
  }
  void Handle(TimePoint now) {
    const MutexLock lock(&mutex_);
    if (!over_) server_->Handle(now);
  }
  // The feed's thread may be waiting for the sockets: they are closed when nobody knows this any more.
  void End() {
    const MutexLock lock(&mutex_);
    over_ = true;
  }

 private:
  Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<KvFeedListener> listener_;
  std::unique_ptr<KvServer> server_ ABSL_GUARDED_BY(mutex_);
};

KvFeed::KvFeed() : wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), thread_([this] { Run(); }) {}

KvFeed::~KvFeed() {
  {
    const MutexLock lock(&mutex_);
    stopped_ = true;
  }
  Wake();
  thread_.join();
  close(wake_);
}

void KvFeed::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

StatusOr<uint64_t> KvFeed::Follow(const std::vector<KvPublisher>& ranks,
                                  std::unique_ptr<KvFeedListener> listener) {
  auto made = std::make_shared<Subscription>(std::move(listener));
  PORTICO_RETURN_IF_ERROR(made->Open(context_, ranks));
  uint64_t number = 0;
  {
    const MutexLock lock(&mutex_);
    number = ++last_;
    subscriptions_.emplace(number, std::move(made));
  }
  Wake();
  return number;
}

void KvFeed::Unfollow(uint64_t subscription) {
  std::shared_ptr<Subscription> gone;
  {
    const MutexLock lock(&mutex_);
    const auto found = subscriptions_.find(subscription);
    if (found == subscriptions_.end()) return;
    gone = std::move(found->second);
    subscriptions_.erase(found);
  }
  Wake();
  gone->End();
}

bool KvFeed::TakeSubscriptions(std::vector<std::shared_ptr<Subscription>>* now) {
  now->clear();
  const MutexLock lock(&mutex_);
  for (const auto& [number, subscription] : subscriptions_) now->push_back(subscription);
  return !stopped_;
}

void KvFeed::Run() {
  const net::ZmqLibrary* zmq = net::LoadZmq();
  if (zmq == nullptr) return;  // no subscription gets events
  std::vector<std::shared_ptr<Subscription>> all;
  std::vector<void*> sockets;
  std::vector<zmq_pollitem_t> waits;
  while (TakeSubscriptions(&all)) {
    sockets.clear();
    TimePoint deadline = TimePoint::max();
    for (const auto& each : all) each->AddSockets(&sockets, &deadline);
    waits.assign(1, {nullptr, wake_, ZMQ_POLLIN, 0});
    for (void* socket : sockets) waits.push_back({socket, 0, ZMQ_POLLIN, 0});
    int64_t patience = -1;
    if (deadline != TimePoint::max()) {
      const Duration left = std::max(deadline - Clock::now(), Duration::zero());
      patience = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    }
    zmq->poll(waits.data(), static_cast<int>(waits.size()), static_cast<long>(patience));
    uint64_t wakes = 0;
    if (waits[0].revents != 0) [[maybe_unused]]
      const ssize_t got = read(wake_, &wakes, sizeof(wakes));
    for (const auto& each : all) each->Handle(Clock::now());
    // Each look costs as much as there are sockets: of many, what comes within a moment is taken together.
    if (waits.size() > kManySockets) std::this_thread::sleep_for(kMoment);
  }
}

}  // namespace portico
