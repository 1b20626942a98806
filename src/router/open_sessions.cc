#include "router/open_sessions.h"

namespace portico::router {
namespace {

constexpr Duration kForgetEvery = std::chrono::minutes(1);

}  // namespace

void OpenSessions::Open(std::string_view id, TimePoint now) {
  if (id.empty() || id.size() > kMaxId) return;
  const MutexLock lock(&mutex_);
  if (sessions_.size() >= kMaxSessions) Forget(now);
  if (sessions_.size() >= kMaxSessions && !sessions_.contains(std::string(id))) return;
  sessions_[std::string(id)] = {.used = now};
  count_.store(sessions_.size(), std::memory_order_relaxed);
}

void OpenSessions::Close(std::string_view id) {
  if (!any()) return;
  const MutexLock lock(&mutex_);
  sessions_.erase(std::string(id));
  count_.store(sessions_.size(), std::memory_order_relaxed);
}

std::optional<std::string> OpenSessions::WorkerOf(std::string_view id) {
  if (!any()) return std::nullopt;
  const MutexLock lock(&mutex_);
  const auto found = sessions_.find(std::string(id));
  if (found == sessions_.end()) return std::nullopt;
  return found->second.worker;
}

void OpenSessions::NoteUse(std::string_view id, TimePoint now) {
  const MutexLock lock(&mutex_);
  const auto found = sessions_.find(std::string(id));
  if (found != sessions_.end()) found->second.used = now;
}

void OpenSessions::Bind(std::string_view id, std::string_view worker) {
  const MutexLock lock(&mutex_);
  const auto found = sessions_.find(std::string(id));
  if (found != sessions_.end() && found->second.worker.empty()) found->second.worker = worker;
}

void OpenSessions::Tick(TimePoint now) {
  if (!any()) return;
  const MutexLock lock(&mutex_);
  Forget(now);
}

void OpenSessions::Forget(TimePoint now) {
  if (now < next_) return;
  next_ = now + kForgetEvery;
  absl::erase_if(sessions_, [&](const auto& entry) { return now - entry.second.used > kIdle; });
  count_.store(sessions_.size(), std::memory_order_relaxed);
}

}  // namespace portico::router
