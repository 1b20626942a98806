// The mock engine that gives vectors or rows of logits instead of tokens.
//
// Rules. A request, of however many texts, is computed ttft after its admission, all texts at once. The values
// of a text follow from its token ids, their order and their types, and lie in [-1, 1] (a vector) or [-4, 4]
// (logits). Each text draws its fault: error and die as for tokens; one that stalls gets no answer until it is
// aborted, and its request runs as long. A pause moves the time at which a running request is due; a retracted
// one waits for its ttft again.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/mutex.h"
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
  void Abort(StreamId stream, ShardIndex shard) override;
  EngineLoad load() const override;
  void Control(EngineControl control, TimePoint deadline, ControlDone done) override;
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

  Status CheckServing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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

  mutable Mutex mutex_;
  CondVar wake_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kServing;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  Inbox inbox_ ABSL_GUARDED_BY(mutex_);
  int64_t live_ ABSL_GUARDED_BY(mutex_) = 0;        // requests with an answer to come
  uint64_t submitted_ ABSL_GUARDED_BY(mutex_) = 0;  // texts
  EngineLoad load_ ABSL_GUARDED_BY(mutex_);         // as of the last step

  std::deque<Group> running_;  // by admission, so by due time
  std::deque<Group> waiting_;
  std::optional<TimePoint> frozen_at_;  // a pause has reached this thread
  EngineLoad now_;                      // what is copied to load_
  Outbox<PoolingSink, PoolingOutput> outbox_;

  Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace portico
