// The lanes of a pooling engine: contexts that compute a batch at a time each, whatever the others do.
//
// The engine's thread calls; each lane computes on a thread of its own. The model must outlive them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/llama/model/model.h"
#include "engine/llama/pooling/pooling_runner.h"
#include "engine/llama/pooling/pooling_scheduler.h"
#include "engine/llama/pooling/thread_choice.h"

namespace portico::llama {

class PoolingLanes {
 public:
  // A batch that has been computed, or has failed as PoolingRunner::Run() says.
  struct Ended {
    size_t lane = 0;
    Batch batch;
    Status status;
    Duration took{};
  };

  // `count` is at least 1. The first is as the options say; the others' batches have at most side_tokens.
  static StatusOr<std::unique_ptr<PoolingLanes>> Create(const LlamaModel& model,
                                                        const PoolingRunnerOptions& options,
                                                        size_t count, int32_t side_tokens);
  // Cancels what is being computed.
  ~PoolingLanes();
  PoolingLanes(const PoolingLanes&) = delete;
  PoolingLanes& operator=(const PoolingLanes&) = delete;

  // Called by a lane's thread after each batch. To be set before the first one.
  void set_on_end(std::function<void()> on_end) { on_end_ = std::move(on_end); }

  size_t size() const { return lanes_.size(); }
  // The hidden states of a lane's last batch are there until its next one begins.
  const PoolingRunner& runner(size_t lane) const { return *lanes_[lane]->runner; }

  // How many batches may begin: lanes that are free and will have a thread.
  size_t room() const;
  // The lane that the next batch goes to: the first that is free. There is room().
  size_t next() const;
  // The most tokens of a batch on lane next().
  int32_t most_tokens() const { return lanes_[next()]->most_tokens; }

  // Computes a batch on lane next() with a part of the threads that no batch has; so many more are about to begin.
  void Begin(Batch batch, size_t more);
  // The batch of this lane ends soon, CANCELLED.
  void Cancel(size_t lane) { lanes_[lane]->cancelled = true; }
  void CancelAll();
  // The batches that have ended since the last call; their lanes are free.
  std::vector<Ended> TakeEnded();
  // Until no lane computes.
  void Wait();

  // Forgets the texts that have been begun. All lanes are free.
  void Clear();

 private:
  struct Lane {
    std::unique_ptr<PoolingRunner> runner;
    int32_t most_tokens = 0;
    int32_t most_threads = 1;
    std::atomic<bool> cancelled{false};

    // The engine's thread only.
    bool free = true;
    bool alone = false;   // no other lane has had a batch meanwhile
    int32_t threads = 0;  // of its batch

    // Guarded by mutex_, but for `batch` while it is being computed.
    bool computing = false;
    Batch batch;
    Status status;
    Duration took{};

    CondVar begin;
    std::thread thread;
  };

  explicit PoolingLanes(int32_t threads) : free_threads_(threads), alone_(threads) {}
  void Compute(Lane* lane);

  std::function<void()> on_end_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  int32_t free_threads_;  // the engine's thread only, as the next
  ThreadChoice alone_;

  Mutex mutex_;
  CondVar end_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace portico::llama
