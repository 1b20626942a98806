// The mock engine that gives vectors or rows of logits instead of tokens.
//
// Rules. A request, of however many texts, is computed ttft after its admission, all texts at once. The values
// of a text follow from its token ids, their order and their types, and lie in [-1, 1] (a vector) or [-4, 4]
// (logits). Each text draws its fault: error and die as for tokens; one that stalls gets no answer until it is
// aborted, and its request runs as long. A pause moves the time at which a running request is due; a retracted
// one waits for its ttft again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "engine/mock/mock_engine.h"
#include "engine/mock/mock_inbox.h"
#include "engine/outbox.h"

namespace portico {

class MockPoolingEngine final : public Engine {
 public:
  // options.task is kEmbed or kClassify. Starts the engine's one thread.
  explicit MockPoolingEngine(MockEngineOptions options);
  ~MockPoolingEngine() override { Stop(); }

  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override;
  Status SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) override;
  void Abort(StreamId stream) override;
  EngineLoad load() const override;
  Status FlushCache() override { return OkStatus(); }  // there is none
  Status Pause(PauseMode mode) override;
  Status Continue() override;
  void Stop() override;

 private:
  struct Text {
    PoolingRequest request;
    MockFault fault = MockFault::kNone;
  };
  // One SubmitPooling: the texts of it that have no answer yet.
  struct Group {
    std::vector<Text> texts;
    PoolingSink* sink = nullptr;
    TimePoint due{};
    bool computed = false;  // what is left of it stalls
  };
  enum class State { kServing, kStopping, kDead };

  using Inbox = MockInbox<Group>;

  Status CheckServing() const;
  Status PostPause(std::optional<PauseMode> mode);

  // The rest is called on the engine's thread.
  void Run();
  // Sleeps until a request is due or the inbox has something, then takes the inbox. False: stop.
  bool WaitForWork(Inbox* work);
  void Handle(Inbox* work);
  void AbortTexts(const absl::flat_hash_set<StreamId>& streams, std::deque<Group>* groups);
  void Freeze(PauseMode mode);
  void Thaw();
  void AdmitWaiting(TimePoint now);
  // False: a fault has killed the engine.
  bool ComputeDue(TimePoint now);
  bool Compute(Group* group);
  PoolingOutput Answer(const Text& text);
  void EndAll(FinishReason reason, const Status& error);
  void EndAll(std::deque<Group>* groups, FinishReason reason, const Status& error);
  void PublishAndDeliver();

  const MockEngineOptions options_;
  const EngineInfo info_;
  const Duration ttft_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  State state_ = State::kServing;  // guarded by mutex_
  bool paused_ = false;            // guarded by mutex_
  Inbox inbox_;                    // guarded by mutex_
  int64_t live_ = 0;               // requests with an answer to come; guarded by mutex_
  uint64_t submitted_ = 0;         // texts; guarded by mutex_
  EngineLoad load_;                // as of the last step; guarded by mutex_

  std::deque<Group> running_;  // by admission, so by due time
  std::deque<Group> waiting_;
  std::optional<TimePoint> frozen_at_;  // a pause has reached this thread
  EngineLoad now_;                      // what is copied to load_
  Outbox<PoolingSink, PoolingOutput> outbox_;

  std::mutex join_mutex_;
  std::thread thread_;  // joined under join_mutex_
};

}  // namespace portico
