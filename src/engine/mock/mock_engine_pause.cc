// Pause and continue of the mock engine.
#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "engine/mock/mock_engine_thread.h"

namespace portico {

Status MockEngine::Pause(PauseMode mode) {
  {
    const MutexLock lock(&mutex_);
    PORTICO_RETURN_IF_ERROR(CheckServing());
    paused_ = true;
    if (mode != PauseMode::kInPlace) holds_no_cells_ = true;
    inbox_.Pause(mode);
  }
  wake_.NotifyOne();
  return OkStatus();
}

Status MockEngine::Continue() {
  {
    const MutexLock lock(&mutex_);
    PORTICO_RETURN_IF_ERROR(CheckServing());
    paused_ = holds_no_cells_ = false;
    inbox_.Pause(std::nullopt);
  }
  wake_.NotifyOne();
  return OkStatus();
}

void MockEngine::Freeze(PauseMode mode) {
  if (!frozen_at_) frozen_at_ = Clock::now();
  if (mode == PauseMode::kInPlace) return;
  if (mode == PauseMode::kRetract) now_.retractions += running_.size();
  RetractAll();
  if (mode == PauseMode::kRetract) return;
  for (const StreamPtr& stream : waiting_) {
    outbox_.Add(stream->sink(), stream->Ended(FinishReason::kAbort, OkStatus()));
  }
  waiting_.clear();
  now_.retracted = 0;
}

// The oldest first, before those that wait already.
void MockEngine::RetractAll() {
  std::vector<StreamPtr> streams;
  for (auto& [id, stream] : running_) {
    now_.kv_cells_used -= stream->cells();
    streams.push_back(std::move(stream));
  }
  now_.retracted += static_cast<int64_t>(streams.size());
  running_.clear();
  timers_ = {};
  std::sort(streams.begin(), streams.end(),
            [](const StreamPtr& a, const StreamPtr& b) { return a->id() > b->id(); });
  for (StreamPtr& stream : streams) waiting_.push_front(std::move(stream));
}

void MockEngine::Thaw(TimePoint now) {
  if (!frozen_at_) return;
  const Duration pause = now - *frozen_at_;
  frozen_at_.reset();
  std::vector<Timer> timers;
  for (; !timers_.empty(); timers_.pop()) timers.push_back(timers_.top());
  for (const Timer& timer : timers) {
    if (const auto it = running_.find(timer.stream); it != running_.end()) {
      it->second->Postpone(pause);
      Schedule(now, *it->second);
    }
  }
}

}  // namespace portico
