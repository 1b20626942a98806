#include "engine/llama/pooling_runners.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace portico::llama {

StatusOr<std::unique_ptr<PoolingRunners>> PoolingRunners::Create(
    const LlamaModel& model, const PoolingRunnerOptions& options, size_t count,
    int32_t side_tokens) {
  std::unique_ptr<PoolingRunners> all(new PoolingRunners(options.threads));
  for (size_t i = 0; i < count; ++i) {
    PoolingRunnerOptions one = options;
    if (i > 0) one.max_tokens = side_tokens;
    // Where it has a batch there are i others at least.
    one.threads = std::max(1, options.threads / static_cast<int32_t>(i + 1));
    PORTICO_ASSIGN_OR_RETURN(std::unique_ptr<PoolingRunner> runner,
                             PoolingRunner::Create(model, one));
    all->runners_.push_back(std::move(runner));
  }
  all->work_.resize(count);
  all->results_.resize(count);
  for (size_t i = 1; i < count; ++i) {
    all->helpers_.emplace_back([&runners = *all, i] { runners.Help(i); });
  }
  return all;
}

PoolingRunners::~PoolingRunners() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begin_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void PoolingRunners::Help(size_t index) {
  pthread_setname_np(pthread_self(), "llama");
  std::unique_lock lock(mutex_);
  while (true) {
    begin_.wait(lock, [&] { return stopping_ || work_[index] != nullptr; });
    if (stopping_) return;
    const Batch& batch = *work_[index];
    const std::atomic<bool>& cancelled = *cancelled_;
    const int32_t threads = step_threads_;
    lock.unlock();
    Status result = runners_[index]->Run(batch.pieces, threads, cancelled);
    lock.lock();
    results_[index] = std::move(result);
    work_[index] = nullptr;
    if (--helping_ == 0) end_.notify_one();
  }
}

Status PoolingRunners::RunAlone(const Batch& batch, const std::atomic<bool>& cancelled) {
  const TimePoint begin = Clock::now();
  Status result = runners_[0]->Run(batch.pieces, alone_.threads(), cancelled);
  if (!result.ok()) return result;
  alone_.Took(Seconds(Clock::now() - begin) / batch.tokens);
  return result;
}

std::vector<Status> PoolingRunners::Run(const std::vector<Batch>& batches,
                                        const std::atomic<bool>& cancelled) {
  if (batches.size() == 1) return {RunAlone(batches[0], cancelled)};
  const int32_t threads = std::max(1, threads_ / static_cast<int32_t>(batches.size()));
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 1; i < batches.size(); ++i) work_[i] = &batches[i];
    helping_ = batches.size() - 1;
    step_threads_ = threads;
    cancelled_ = &cancelled;
    begin_.notify_all();
  }
  Status first = runners_[0]->Run(batches[0].pieces, threads, cancelled);
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return helping_ == 0; });
  std::vector<Status> results = {std::move(first)};
  for (size_t i = 1; i < batches.size(); ++i) results.push_back(std::move(results_[i]));
  return results;
}

void PoolingRunners::Clear() {
  for (const auto& runner : runners_) runner->Clear();
}

}  // namespace portico::llama
