#include "engine/sglang/sessions.h"

#include <fmt/format.h>

namespace portico::sglang {

bool Sessions::HasEnded(const Session& session, TimePoint now) const {
  return session.timeout && now - session.used > *session.timeout;
}

Status Sessions::Open(const std::string& id, std::optional<double> timeout, TimePoint now) {
  const MutexLock lock(&mutex_);
  std::erase_if(open_, [&](const auto& each) { return HasEnded(each.second, now); });
  if (open_.size() >= kMaxSessions) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("{} sessions are open already", kMaxSessions));
  }
  Session session;
  session.used = now;
  if (timeout) {
    session.timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*timeout));
  }
  if (open_.emplace(id, std::move(session)).second) return OkStatus();
  return InvalidArgument("session_id", fmt::format("the session `{:.100}` is open already", id));
}

Status Sessions::Close(std::string_view id) {
  const MutexLock lock(&mutex_);
  const auto it = open_.find(id);
  if (it == open_.end()) {
    return Error(StatusCode::kNotFound, fmt::format("no session `{:.100}` is open", id),
                 "session_id");
  }
  open_.erase(it);
  return OkStatus();
}

void Sessions::Clear() {
  const MutexLock lock(&mutex_);
  open_.clear();
}

StatusOr<std::string> Sessions::WireRidOf(std::string_view id, std::string_view name,
                                          TimePoint now) {
  const MutexLock lock(&mutex_);
  const auto it = open_.find(id);
  if (it == open_.end() || HasEnded(it->second, now)) {
    return InvalidArgument("session_params", fmt::format("no session `{:.100}` is open", id));
  }
  it->second.used = now;
  if (name.empty()) return std::string();
  for (const auto& [known, rid] : it->second.requests) {
    if (known == name) return rid;
  }
  return InvalidArgument(
      "session_params",
      fmt::format("the session `{:.100}` has no request whose rid is `{:.100}`", id, name));
}

void Sessions::Note(std::string_view id, std::string name, std::string wire_rid) {
  const MutexLock lock(&mutex_);
  const auto it = open_.find(id);
  if (it == open_.end() || name.empty()) return;
  auto& requests = it->second.requests;
  if (requests.size() == kMaxRequests) requests.pop_back();
  requests.emplace_front(std::move(name), std::move(wire_rid));
}

}  // namespace portico::sglang
