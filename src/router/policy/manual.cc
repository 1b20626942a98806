#include "router/policy/manual.h"

#include <limits>

#include "router/index/block_hash.h"
#include "router/policy/worker_load.h"

namespace portico::router {

Manual::Manual(const PolicyOptions& options)
    : mode_(options.assignment_mode == "min_load"    ? Mode::kMinLoad
            : options.assignment_mode == "min_group" ? Mode::kMinGroup
                                                     : Mode::kRandom),
      max_idle_(options.max_idle),
      dice_(options.seed) {}

void Manual::Count(uint64_t worker, int64_t change) {
  const MutexLock lock(&groups_mutex_);
  groups_[worker] += change;
}

size_t Manual::Assign(std::span<Worker* const> candidates) {
  if (mode_ == Mode::kRandom) return dice_.Below(candidates.size());
  if (mode_ == Mode::kMinLoad) return LeastLoaded(candidates, dice_);
  const MutexLock lock(&groups_mutex_);
  size_t best = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto group = groups_.find(candidates[i]->number());
    const int64_t size = group == groups_.end() ? 0 : group->second;
    if (size < least) {
      best = i;
      least = size;
    }
  }
  return best;
}

Choice Manual::Choose(std::span<Worker* const> candidates, const RoutingKey& key) {
  if (key.session.empty()) return {.index = Assign(candidates), .reason = "no session"};
  const uint64_t hash = HashText(key.session);
  Part& part = parts_[hash >> 58];
  const TimePoint now = Clock::now();
  const MutexLock lock(&part.mutex);
  auto found = part.sessions.find(hash);
  if (found != part.sessions.end()) {
    found->second.used = now;
    for (const uint64_t number : found->second.workers) {
      for (size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i]->number() == number) return {.index = i, .reason = "session"};
      }
    }
  }
  const size_t index = Assign(candidates);
  const uint64_t number = candidates[index]->number();
  if (found == part.sessions.end()) {
    if (sessions() >= kMaxSessions) return {.index = index, .reason = "sessions full"};
    found = part.sessions.try_emplace(hash).first;
    found->second.used = now;
    sessions_.fetch_add(1, std::memory_order_relaxed);
  }
  auto& workers = found->second.workers;
  uint64_t& place = workers[0] == 0 ? workers[0] : workers[1];
  if (place != 0) Count(place, -1);
  place = number;
  Count(number, 1);
  return {.index = index, .reason = "new session"};
}

void Manual::OnWorkerRemoved(Worker& worker) {
  for (Part& part : parts_) {
    const MutexLock lock(&part.mutex);
    for (auto& [hash, session] : part.sessions) {
      if (session.workers[0] == worker.number()) {
        session.workers = {session.workers[1], 0};
      } else if (session.workers[1] == worker.number()) {
        session.workers[1] = 0;
      }
    }
  }
  const MutexLock lock(&groups_mutex_);
  groups_.erase(worker.number());
}

void Manual::OnTick(TimePoint now) {
  for (Part& part : parts_) {
    const MutexLock lock(&part.mutex);
    for (auto it = part.sessions.begin(); it != part.sessions.end();) {
      const auto next = std::next(it);
      if (now - it->second.used > max_idle_) {
        for (const uint64_t number : it->second.workers) {
          if (number != 0) Count(number, -1);
        }
        part.sessions.erase(it);
        sessions_.fetch_sub(1, std::memory_order_relaxed);
      }
      it = next;
    }
  }
}

}  // namespace portico::router
