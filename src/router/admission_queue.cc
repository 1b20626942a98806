#include "router/admission_queue.h"

#include <algorithm>
#include <utility>

namespace portico::router {

Priority PriorityOf(std::string_view name) {
  if (name == "system") return Priority::kSystem;
  if (name == "interactive") return Priority::kInteractive;
  if (name == "bulk") return Priority::kBulk;
  return Priority::kDefault;
}

namespace {

bool IsUnlimited(const AdmissionLimits& limits) {
  return limits.requests < 0 && limits.per_second == 0;
}

}  // namespace

AdmissionQueue::AdmissionQueue(const AdmissionLimits& limits)
    : unlimited_(IsUnlimited(limits)),
      limits_(limits),
      tokens_(static_cast<double>(limits.per_second)),
      filled_(Clock::now()) {}

bool AdmissionQueue::Configure(const AdmissionLimits& limits) {
  const MutexLock lock(&mutex_);
  if (limits == limits_) return false;
  if (limits.per_second != limits_.per_second) tokens_ = static_cast<double>(limits.per_second);
  limits_ = limits;
  unlimited_ = IsUnlimited(limits);
  LetIn(Clock::now());
  return true;
}

int64_t AdmissionQueue::Waiting() const {
  size_t count = 0;
  for (const auto& queue : waiting_) count += queue.size();
  return static_cast<int64_t>(count);
}

bool AdmissionQueue::Take(TimePoint now) {
  if (limits_.requests >= 0 && inside_ >= limits_.requests) return false;
  if (limits_.per_second > 0) {
    const auto rate = static_cast<double>(limits_.per_second);
    tokens_ = std::min(rate, tokens_ + Seconds(now - filled_) * rate);
    filled_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
  }
  ++inside_;
  return true;
}

AdmissionQueue::Result AdmissionQueue::Enter(net::Shard& shard, Priority priority,
                                             absl::AnyInvocable<void()> on_place,
                                             std::shared_ptr<Ticket>* ticket) {
  if (unlimited_.load(std::memory_order_relaxed)) {
    inside_.fetch_add(1, std::memory_order_relaxed);
    return Result::kPlace;
  }
  const MutexLock lock(&mutex_);
  const int64_t waiting = Waiting();
  if (waiting == 0 && Take(Clock::now())) return Result::kPlace;
  if (waiting >= limits_.queue) return Result::kFull;
  auto made = std::make_shared<Ticket>();
  made->shard = &shard;
  made->on_place = std::move(on_place);
  made->priority = priority;
  auto& queue = waiting_[static_cast<size_t>(priority)];
  made->place = queue.insert(queue.end(), made);
  *ticket = std::move(made);
  return Result::kWaits;
}

void AdmissionQueue::LetIn(TimePoint now) {
  for (auto& queue : waiting_) {
    while (!queue.empty()) {
      if (!Take(now)) return;
      TicketPtr next = std::move(queue.front());
      queue.pop_front();
      next->called = true;
      net::Shard& shard = *next->shard;
      shard.Post([next = std::move(next)] {
        if (next->on_place) next->on_place();
      });
    }
  }
}

void AdmissionQueue::Leave() {
  if (unlimited_.load(std::memory_order_relaxed)) {
    inside_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  const MutexLock lock(&mutex_);
  --inside_;
  if (Waiting() > 0) LetIn(Clock::now());
}

void AdmissionQueue::Tick() {
  if (unlimited_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(&mutex_);
  // Also after a change of the limits, at which Leave() may have looked at the former ones.
  if (Waiting() > 0) LetIn(Clock::now());
}

bool AdmissionQueue::GiveUp(const std::shared_ptr<Ticket>& ticket) {
  ticket->on_place = nullptr;
  const MutexLock lock(&mutex_);
  if (ticket->called) return false;
  waiting_[static_cast<size_t>(ticket->priority)].erase(ticket->place);
  return true;
}

int64_t AdmissionQueue::waiting() const {
  const MutexLock lock(&mutex_);
  return Waiting();
}

}  // namespace portico::router
