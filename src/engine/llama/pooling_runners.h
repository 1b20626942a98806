// The contexts of a pooling engine: the batches of a step are computed side by side, each on a context of its own.
//
// Several batches share the threads; a batch alone has what thread_choice.h says.
//
// Used by one thread. The model must outlive it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/llama/model.h"
#include "engine/llama/pooling_runner.h"
#include "engine/llama/pooling_scheduler.h"
#include "engine/llama/thread_choice.h"

namespace portico::llama {

class PoolingRunners {
 public:
  // `count` is at least 1. The first is as the options say; the others' batches have at most side_tokens.
  static StatusOr<std::unique_ptr<PoolingRunners>> Create(const LlamaModel& model,
                                                          const PoolingRunnerOptions& options,
                                                          size_t count, int32_t side_tokens);
  ~PoolingRunners();
  PoolingRunners(const PoolingRunners&) = delete;
  PoolingRunners& operator=(const PoolingRunners&) = delete;

  size_t size() const { return runners_.size(); }
  const PoolingRunner& operator[](size_t index) const { return *runners_[index]; }

  // Computes batch i on runner i, as PoolingRunner::Run(): the result of each. From 1 to size() batches.
  std::vector<Status> Run(const std::vector<Batch>& batches, const std::atomic<bool>& cancelled);

  // Forgets the texts that have been begun.
  void Clear();

 private:
  explicit PoolingRunners(int32_t threads) : threads_(threads), alone_(threads) {}
  Status RunAlone(const Batch& batch, const std::atomic<bool>& cancelled);
  void Help(size_t index);

  const int32_t threads_;
  ThreadChoice alone_;
  std::vector<std::unique_ptr<PoolingRunner>> runners_;

  std::mutex mutex_;
  std::condition_variable begin_;
  std::condition_variable end_;
  bool stopping_ = false;                         // guarded by mutex_
  std::vector<const Batch*> work_;                // by runner; null: none. guarded by mutex_
  const std::atomic<bool>* cancelled_ = nullptr;  // of the step that runs; guarded by mutex_
  int32_t step_threads_ = 1;                      // a batch; guarded by mutex_
  size_t helping_ = 0;                // batches that helpers have not ended; guarded by mutex_
  std::vector<Status> results_;       // by runner; guarded by mutex_
  std::vector<std::thread> helpers_;  // of all runners but the first
};

}  // namespace portico::llama
