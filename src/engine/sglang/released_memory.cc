#include "engine/sglang/released_memory.h"

#include <fmt/format.h>

#include <utility>

namespace portico::sglang {
namespace {

Status WrongTag(std::string_view tag, std::string_view why) {
  return Error(StatusCode::kFailedPrecondition, fmt::format("the memory `{:.64}` {}", tag, why),
               "tags");
}

}  // namespace

ReleasedMemory::Tags ReleasedMemory::AllIfEmpty(Tags tags) {
  if (!tags.empty()) return tags;
  return {"kv_cache", "weights", "cuda_graph"};
}

Status ReleasedMemory::Release(const Tags& tags) {
  const MutexLock lock(&mutex_);
  auto released = released_;
  for (const std::string& tag : tags) {
    if (!released.insert(tag).second) return WrongTag(tag, "is released already");
  }
  released_ = std::move(released);
  return OkStatus();
}

Status ReleasedMemory::Resume(const Tags& tags) {
  const MutexLock lock(&mutex_);
  auto released = released_;
  for (const std::string& tag : tags) {
    if (released.erase(tag) == 0) return WrongTag(tag, "is not released");
  }
  released_ = std::move(released);
  return OkStatus();
}

bool ReleasedMemory::Any() const {
  const MutexLock lock(&mutex_);
  return !released_.empty();
}

void ReleasedMemory::Clear() {
  const MutexLock lock(&mutex_);
  released_.clear();
}

}  // namespace portico::sglang
