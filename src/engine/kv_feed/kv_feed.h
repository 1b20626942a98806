// The KV-cache events that SGLang and vLLM servers publish over ZMQ (--kv-events-config, publisher "zmq"): one thread
// follows any number of servers.
//
// Each of a server's data-parallel ranks has a PUB socket. A message has three parts: topic, number (8 bytes, big-endian),
// batch. Where the server also replays (a ROUTER socket, asked from a number on), what is kept of the past is asked for
// when a connection begins, and what is missing when numbers are left out. Whenever something is missing for good, the
// numbers go back (a restart) or a connection was lost meanwhile, what was told before does not count any more: the
// listener is told so, and what follows begins anew. Messages that are not of this form are reported and left out.
//
// Bounds: 10,000 messages wait for each socket, parts have at most 32 MiB, a replay brings at most 200,000 batches and
// ends after 2 s in which nothing comes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "message/kv_events.h"
#include "net/zmq/zmq_socket.h"

namespace portico {

// Where a rank publishes: "tcp://host:port" or "ipc://path".
struct KvPublisher {
  std::string events;
  std::string topic = {};   // messages whose topic begins with it
  std::string replay = {};  // empty: what is lost cannot be had
  int32_t rank = -1;        // whose cache that is; -1: what batches say
};

// On the feed's thread; returns soon, and calls nothing of the feed.
class KvFeedListener {
 public:
  virtual ~KvFeedListener() = default;
  // `reset`: nothing that was told before counts any more; the batch may be empty then. kNothing and kMore mean the same.
  virtual KvWish OnKvEvents(KvEventBatch batch, bool reset) = 0;
  // A connection is lost. What was told may not be true any more; the next that is told comes with a reset.
  virtual void OnKvLost() {}
  // A message that cannot be read, or a replay that does not come.
  virtual void OnKvFault(std::string_view why) = 0;
};

// Thread safe.
class KvFeed {
 public:
  KvFeed();
  ~KvFeed();

  // Follows a server with one publisher a rank until Unfollow() or the end of the feed. It is told of from the moment on
  // at which all ranks are connected. UNAVAILABLE names an address that is none.
  StatusOr<uint64_t> Follow(const std::vector<KvPublisher>& ranks,
                            std::unique_ptr<KvFeedListener> listener);
  // The listener is not called any more once this returns, which may have to wait for a call of it.
  void Unfollow(uint64_t subscription);

 private:
  class Subscription;

  void Run();
  // The subscriptions as they are now; false: the end.
  bool TakeSubscriptions(std::vector<std::shared_ptr<Subscription>>* now);
  void Wake();

  const int wake_;
  net::ZmqContext context_;
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Subscription>> subscriptions_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace portico
