// The lives of SGLang: its death is noticed, and it is started again.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "engine/sglang/engine_state.h"

namespace portico::sglang {
namespace {

constexpr std::chrono::seconds kMaxBackoff{60};

}  // namespace

void SglangEngine::Bury(LifePtr life) {
  if (life->media != nullptr) {
    life->media->Stop(
        FinishReason::kError,
        Error(StatusCode::kUnavailable, "the engine failed while the request was running"));
  }
  life->link->Stop();
  LogError("SGLang failed: {}", life->LastWords());
  // Calls that still hold it are short; its processes must not end on their threads.
  while (life.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Status SglangEngine::StartAgain() {
  {
    const MutexLock lock(&mutex_);
    died_ = false;  // before the new one can say that it has died
  }
  SglangOptions again = options_;
  again.hand_over_wait = {};  // this is tried again in any case, and Stop() waits for it
  PORTICO_ASSIGN_OR_RETURN(LifePtr life, Incarnation::Start(again, nullptr, Owner()));
  const Facts& facts = life->facts;
  if (facts.vocab_size != info_.vocab_size || facts.context_length != info_.context_length) {
    return Error(StatusCode::kFailedPrecondition, "SGLang has come back with another model");
  }
  paused_.store(false, std::memory_order_relaxed);
  sessions_.Clear();
  released_.Clear();
  adapters_.Clear();
  AddAdapters(facts);
  const MutexLock lock(&mutex_);
  if (stopping_) return Error(StatusCode::kUnavailable, "the engine has stopped");
  lives_.fetch_add(1, std::memory_order_relaxed);
  life_ = std::move(life);
  return OkStatus();
}

std::optional<SglangEngine::LifePtr> SglangEngine::WaitForDeath() {
  const MutexLock lock(&mutex_);
  while (!stopping_ && !died_) wake_.Wait(&mutex_);
  if (stopping_) return std::nullopt;
  return std::exchange(life_, nullptr);
}

bool SglangEngine::StopsWithin(Duration time) {
  const TimePoint until = Clock::now() + time;
  const MutexLock lock(&mutex_);
  while (!stopping_ && wake_.WaitUntil(&mutex_, until)) {
  }
  return stopping_;
}

void SglangEngine::Supervise() {
  auto backoff = std::chrono::seconds(1);
  while (std::optional<LifePtr> dead = WaitForDeath()) {
    if (*dead != nullptr) Bury(*std::move(dead));
    if (!options_.restart) return;
    LogInfo("SGLang is started again in {} s", backoff.count());
    if (StopsWithin(backoff)) return;
    const Status started = StartAgain();
    if (started.ok()) {
      backoff = std::chrono::seconds(1);
      LogInfo("SGLang serves again");
      continue;
    }
    LogError("SGLang cannot be started again: {}", MessageOf(started));
    {
      const MutexLock lock(&mutex_);
      died_ = true;
    }
    backoff = std::min(2 * backoff, kMaxBackoff);
  }
}

void SglangEngine::Stop() {
  LifePtr life;
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    life = std::exchange(life_, nullptr);
    wake_.NotifyAll();
  }
  if (life != nullptr && life->media != nullptr) {
    life->media->Stop(FinishReason::kAbort, OkStatus());
  }
  if (life != nullptr) life->link->Stop();
  const MutexLock lock(&join_mutex_);
  if (supervisor_.joinable()) supervisor_.join();
  if (life == nullptr) return;
  while (life.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace portico::sglang
