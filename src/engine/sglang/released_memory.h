// What of the schedulers' memory is released (release_memory_occupation). They die of what is released twice or given
// back without having been released. Thread safe.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status.h"

namespace portico::sglang {

class ReleasedMemory {
 public:
  using Tags = std::vector<std::string>;

  // Those that stand for all, where a call names none.
  static Tags AllIfEmpty(Tags tags);

  // FAILED_PRECONDITION (field "tags"), and nothing changes: one of them is released already, or twice among them.
  Status Release(const Tags& tags);
  // FAILED_PRECONDITION (field "tags"), and nothing changes: one of them is not released.
  Status Resume(const Tags& tags);
  bool Any() const;
  void Clear();

 private:
  mutable Mutex mutex_;
  std::set<std::string, std::less<>> released_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico::sglang
