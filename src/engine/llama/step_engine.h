// What the engines here have in common: one thread that runs steps, and how the others reach it.
//
// What they ask for is done between two steps, in the order in which they asked. The thread sleeps while there is
// nothing to do. A step that nobody waits for is cancelled; a model that fails again and again is given up.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/llama/llama_engine.h"

namespace portico::llama {

class StepEngine : public LlamaEngine {
 public:
  const EngineInfo& info() const final { return info_; }
  const std::string& description() const final { return description_; }
  void Abort(StreamId stream, ShardIndex shard) final;
  void Control(EngineControl control, TimePoint deadline, ControlDone done) final;
  void Stop() override;

 protected:
  // On the engine's thread, once.
  using Action = absl::AnyInvocable<void()>;

  StepEngine(EngineInfo info, std::string description);

  // The last that a constructor does. The destructor calls Stop() first.
  void Start();

  // Any thread. `add` gives the scheduler a request, of which CountEnded() tells the end. Errors as Engine::Submit().
  Status Accept(Action add);
  // Why nothing is accepted any more. OK: it is.
  Status Gone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Any thread. UNAVAILABLE: the engine has stopped or died.
  Status BetweenSteps(Action action);
  // Any thread.
  void Post(Action action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Enqueue({std::move(action), std::nullopt});
  }
  // Any thread. The engine's thread does it without waiting for what it gathers.
  void PostAtOnce(Action action);
  bool cells_are_held() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return in_flight_.load() > 0 && !holds_no_cells_;
  }
  // Any thread.
  virtual Status FlushCache() = 0;
  virtual void UpdateWeights(UpdateWeightsControl update, TimePoint deadline, ControlDone done);
  // What every engine counts, with so many requests in the step.
  EngineLoad LoadWith(int64_t running) const;

  // The rest is for the engine's thread.

  // Around what a step computes. `stream_of` names the stream of each part.
  template <typename Parts, typename StreamOf>
  void BeginStep(const Parts& parts, StreamOf stream_of) {
    const MutexLock lock(&mutex_);
    for (const auto& part : parts) awaited_.push_back(stream_of(part));
    LeaveOutAborted();
  }
  // Becomes true when all streams of the step have been aborted: a long one takes seconds.
  const std::atomic<bool>& cancel_step() const { return cancel_step_; }
  void EndStep(const Status& status);
  // Once the streams of the failed step have ended.
  void StepFailed(const Status& error);

  // A request's last output is in the outbox …
  void CountEnded() { ++ended_; }
  // … and about to be delivered.
  void ReleaseEnded();

  // What the thread waits for before it goes on: so many commands, or that it is so late.
  struct Gathering {
    size_t commands = 0;
    TimePoint until;
  };
  virtual Gathering gathering() const { return {}; }

  virtual bool idle() const = 0;
  // False: there was nothing to do.
  virtual bool RunStep() = 0;
  virtual void EndAborted(StreamId stream) = 0;
  // With their delivery.
  virtual void EndAll(FinishReason reason, const Status& error) = 0;
  // What a pause does to the requests.
  virtual void Freeze(PauseMode mode) = 0;
  virtual void Deliver() = 0;

  const EngineInfo info_;
  mutable Mutex mutex_;

 private:
  struct Command {
    Action action;                  // or
    std::optional<StreamId> abort;  // this
  };

  Status Pause(PauseMode mode);
  Status Continue();
  void Enqueue(Command command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveOutAborted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();
  bool TakeCommands(std::vector<Command>* commands);
  void Apply(std::vector<Command>* commands);
  void Die(const Status& error);

  const std::string description_;

  CondVar wake_;
  std::vector<Command> commands_ ABSL_GUARDED_BY(mutex_);
  size_t enough_ ABSL_GUARDED_BY(mutex_) = 1;  // commands for which the thread is woken
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool holds_no_cells_ ABSL_GUARDED_BY(mutex_) = false;    // a pause has taken all requests' cells
  std::vector<StreamId> awaited_ ABSL_GUARDED_BY(mutex_);  // of the step that runs, not aborted
  std::atomic<bool> paused_{false};                        // changes under mutex_ only
  std::atomic<bool> cancel_step_{false};                   // changes under mutex_ only
  std::atomic<bool> dead_{false};
  std::atomic<int64_t> in_flight_{0};  // requests accepted and not ended; grows under mutex_ only

  // The engine's thread only.
  int64_t ended_ = 0;  // requests whose last output is in the outbox
  int32_t failures_ = 0;
  bool frozen_ = false;  // a pause has reached the engine's thread

  std::once_flag joined_;
  std::thread thread_;
};

}  // namespace portico::llama
