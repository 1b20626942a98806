// The mock engine's thread and the mailbox in front of it. Used by mock_engine*.cc only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/mock/mock_engine.h"
#include "engine/mock/mock_inbox.h"
#include "engine/mock/mock_stream.h"
#include "engine/outbox.h"

namespace portico {

class MockEngine final : public Engine {
 public:
  explicit MockEngine(MockEngineOptions options);
  ~MockEngine() override { Stop(); }

  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override;
  void Abort(StreamId stream, ShardIndex shard) override;
  EngineLoad load() const override;
  void Control(EngineControl control, TimePoint deadline, ControlDone done) override;
  void Stop() override;

 private:
  using StreamPtr = std::unique_ptr<MockStream>;

  // When a running stream wants its next step. Equal times are served in the order of scheduling.
  struct Timer {
    TimePoint due;
    uint64_t order;
    StreamId stream;
    bool operator<(const Timer& other) const {  // the earliest is a priority_queue's greatest
      return due != other.due ? due > other.due : order > other.order;
    }
  };

  enum class State { kServing, kStopping, kDead };

  using Inbox = MockInbox<StreamPtr>;

  Status CheckServing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status FlushCache();
  Status Pause(PauseMode mode);
  Status Continue();

  // The rest is called on the engine's thread.
  void Run();
  // Sleeps until a stream is due or the inbox has something, then takes the inbox. False: stop.
  bool WaitForWork(Inbox* work);
  // Whether there is something to do before a stream is due.
  bool called() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_ != State::kServing || !inbox_.empty();
  }
  void Handle(Inbox* work, TimePoint now);
  void AbortStream(StreamId id);
  void Freeze(PauseMode mode);
  void Thaw(TimePoint now);
  void RetractAll();
  void AdmitWaiting(TimePoint now);
  // False: a fault has killed the engine.
  bool ServeDue(TimePoint now);
  bool ServeStream(TimePoint now, MockStream* stream);
  void Schedule(TimePoint now, const MockStream& stream);
  void EndAll(FinishReason reason, const Status& error);
  void PublishLoad();

  const MockEngineOptions options_;
  const EngineInfo info_;
  MockModel model_;

  mutable Mutex mutex_;
  CondVar wake_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kServing;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool holds_no_cells_ ABSL_GUARDED_BY(mutex_) = false;  // a pause has taken all streams' cells
  Inbox inbox_ ABSL_GUARDED_BY(mutex_);
  int64_t live_ ABSL_GUARDED_BY(mutex_) = 0;  // submitted and not ended
  uint64_t submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  EngineLoad load_ ABSL_GUARDED_BY(mutex_);  // as of the last step

  absl::flat_hash_map<StreamId, StreamPtr> running_;
  std::deque<StreamPtr> waiting_;
  std::priority_queue<Timer> timers_;  // may hold streams that have ended
  uint64_t next_order_ = 0;
  std::optional<TimePoint> frozen_at_;  // a pause has reached this thread
  EngineLoad now_;                      // what PublishLoad() copies to load_
  Outbox<TokenSink, TokenDelta> outbox_;
  std::vector<MockStream*> due_;

  Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace portico
