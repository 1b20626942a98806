// Engines of this process behind one RoutedEngine. A thread looks at their health and load four times a second: one that
// has died gets no requests until it lives again, and what it had cached is forgotten. Of engines that publish what
// their caches hold (KvEventSource) a policy that wants it is told.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "engine/kv_events.h"
#include "router/routed_engine.h"

namespace portico::router {

class LocalFleet {
 public:
  // The engines serve the same model; at least one. `shards`: of the server. FAILED_PRECONDITION: their models differ.
  // Sessions are a single engine's: the engine that comes out cannot keep them.
  static StatusOr<std::unique_ptr<Engine>> MakeEngine(std::vector<std::unique_ptr<Engine>> engines,
                                                      std::shared_ptr<Policy> policy, int shards);
  ~LocalFleet() { Stop(); }

 private:
  struct Watch {
    WorkerPtr worker;
    std::shared_ptr<Engine> engine;
    bool lived = true;
    uint64_t tokens = 0;  // generated, at the last look
    TimePoint at{};
    KvEventHub* kv_events = nullptr;  // the engine's; null: nothing is told
    uint64_t subscription = 0;
    std::shared_ptr<std::atomic<bool>> wants_state;  // the policy needs to be told all of it anew
  };

  LocalFleet() = default;
  void Run();
  void Look(Watch& watch, TimePoint now);
  // Tells the policy what the engine's cache holds, and from now on what it takes in and lets go.
  void Follow(Watch& watch);
  void Stop();
  // Sleeps until Stop(), or so long. Whether the fleet has stopped.
  bool StopsWithin(Duration time);

  std::shared_ptr<Policy> policy_;
  std::vector<Watch> watches_;  // of the thread
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace portico::router
