#include "engine/llama/pooling/pooling_lanes.h"

#include <pthread.h>

#include <algorithm>

#include "base/mutex.h"

namespace portico::llama {

StatusOr<std::unique_ptr<PoolingLanes>> PoolingLanes::Create(const LlamaModel& model,
                                                             const PoolingRunnerOptions& options,
                                                             size_t count, int32_t side_tokens) {
  std::unique_ptr<PoolingLanes> all(new PoolingLanes(options.threads));
  for (size_t i = 0; i < count; ++i) {
    PoolingRunnerOptions one = options;
    if (i > 0) one.max_tokens = side_tokens;
    // Where it has a batch there are i others at least.
    one.threads = std::max(1, options.threads / static_cast<int32_t>(i + 1));
    auto lane = std::make_unique<Lane>();
    PORTICO_ASSIGN_OR_RETURN(lane->runner, PoolingRunner::Create(model, one));
    lane->most_tokens = one.max_tokens;
    lane->most_threads = one.threads;
    all->lanes_.push_back(std::move(lane));
  }
  for (const auto& lane : all->lanes_) {
    lane->thread = std::thread([&lanes = *all, &lane = *lane] { lanes.Compute(&lane); });
  }
  return all;
}

PoolingLanes::~PoolingLanes() {
  CancelAll();
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& lane : lanes_) lane->begin.NotifyOne();
  }
  for (const auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

void PoolingLanes::Compute(Lane* lane) {
  pthread_setname_np(pthread_self(), "llama");
  while (true) {
    int32_t threads = 0;
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && !lane->computing) lane->begin.Wait(&mutex_);
      if (stopping_) return;
      threads = lane->threads;
    }
    const TimePoint began = Clock::now();
    Status status = lane->runner->Run(lane->batch.pieces, threads, lane->cancelled);
    const Duration took = Clock::now() - began;
    {
      const MutexLock lock(&mutex_);
      lane->status = std::move(status);
      lane->took = took;
      lane->computing = false;
      end_.NotifyOne();
    }
    on_end_();
  }
}

size_t PoolingLanes::room() const {
  const auto free = std::count_if(lanes_.begin(), lanes_.end(),
                                  [](const std::unique_ptr<Lane>& one) { return one->free; });
  return static_cast<size_t>(std::min<int64_t>(free, free_threads_));
}

size_t PoolingLanes::next() const {
  const auto free = std::find_if(lanes_.begin(), lanes_.end(),
                                 [](const std::unique_ptr<Lane>& one) { return one->free; });
  return static_cast<size_t>(free - lanes_.begin());
}

void PoolingLanes::Begin(Batch batch, size_t more) {
  Lane& lane = *lanes_[next()];
  const auto others = std::count_if(lanes_.begin(), lanes_.end(),
                                    [](const std::unique_ptr<Lane>& one) { return !one->free; });
  lane.alone = others == 0 && more == 0;
  if (!lane.alone) {
    for (const auto& one : lanes_) one->alone = false;
  }
  const int32_t share =
      lane.alone ? alone_.threads() : free_threads_ / static_cast<int32_t>(more + 1);
  lane.threads = std::clamp(share, 1, lane.most_threads);
  free_threads_ -= lane.threads;
  lane.free = false;
  lane.cancelled = false;
  const MutexLock lock(&mutex_);
  lane.batch = std::move(batch);
  lane.computing = true;
  lane.begin.NotifyOne();
}

std::vector<PoolingLanes::Ended> PoolingLanes::TakeEnded() {
  std::vector<Ended> ended;
  const MutexLock lock(&mutex_);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    if (lane.free || lane.computing) continue;
    if (lane.alone && lane.status.ok()) alone_.Took(Seconds(lane.took) / lane.batch.tokens);
    lane.free = true;
    free_threads_ += lane.threads;
    ended.push_back({i, std::move(lane.batch), std::move(lane.status), lane.took});
    lane.batch = {};
  }
  return ended;
}

void PoolingLanes::CancelAll() {
  for (const auto& lane : lanes_) lane->cancelled = true;
}

void PoolingLanes::Wait() {
  const MutexLock lock(&mutex_);
  while (std::any_of(lanes_.begin(), lanes_.end(),
                     [](const std::unique_ptr<Lane>& one) { return one->computing; })) {
    end_.Wait(&mutex_);
  }
}

void PoolingLanes::Clear() {
  for (const auto& lane : lanes_) lane->runner->Clear();
}

}  // namespace portico::llama
