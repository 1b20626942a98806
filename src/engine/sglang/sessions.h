// The sessions that are open in the scheduler, and what their requests are called on the wire. A client continues a
// request by the name that it gave it; the scheduler knows another one. Thread safe.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace portico::sglang {

class Sessions {
 public:
  static constexpr size_t kMaxSessions = 4096;
  // Of one session; older ones are forgotten.
  static constexpr size_t kMaxRequests = 1024;

  // Before the scheduler is asked. INVALID_ARGUMENT: it is open; RESOURCE_EXHAUSTED: too many are. `timeout`: seconds
  // without a request after which the scheduler closes it, and it is forgotten here.
  Status Open(const std::string& id, std::optional<double> timeout, TimePoint now);
  // NOT_FOUND: it is not open.
  Status Close(std::string_view id);
  // All, when the scheduler has died.
  void Clear();

  // What the scheduler calls the request that the session's client calls `name`; "" for "". INVALID_ARGUMENT (field
  // "session_params"): the session is not open, or has no such request.
  StatusOr<std::string> WireRidOf(std::string_view id, std::string_view name, TimePoint now);
  // A request of the session, on its way.
  void Note(std::string_view id, std::string name, std::string wire_rid);

 private:
  struct Session {
    std::optional<Duration> timeout;
    TimePoint used;
    std::deque<std::pair<std::string, std::string>> requests;  // name, rid of the wire
  };

  bool HasEnded(const Session& session, TimePoint now) const;

  Mutex mutex_;
  std::map<std::string, Session, std::less<>> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico::sglang
