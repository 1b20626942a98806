#include "engine/sglang/link/media_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace portico::sglang {
namespace {

// A batch of /generate, which is taken as a whole, has one for each of at most 4096 prompts.
constexpr size_t kMostGroups = 8192;
constexpr size_t kMostBytes = size_t{512} << 20;
// Choices come one after the other; those of other shards' requests come between.
constexpr size_t kSearchedGroups = 64;
constexpr std::chrono::milliseconds kRoomInterval{10};

// Not inlined: g++ 12 takes the empty tokens of a delta that it sees being moved for uninitialized memory.
[[gnu::noinline]] TokenDelta LastDelta(StreamId stream, FinishReason reason, Status error) {
  TokenDelta delta;
  delta.stream = stream;
  delta.finish = reason;
  if (reason == FinishReason::kError) delta.error = std::move(error);
  return delta;
}

size_t SizeOf(const RequestMedia& media) {
  size_t bytes = 0;
  for (const MediaItem& item : media.items) bytes += item.bytes->size();
  return bytes;
}

}  // namespace

void MediaLink::CloseDescriptor(int* descriptor) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
}

void MediaLink::ClearEvent(int event) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event, &count, sizeof(count));
}

MediaLink::MediaLink(const Facts& facts, int engine_exit, size_t most_unsent_bytes)
    : address_(facts.media_socket),
      max_input_tokens_(facts.max_input_tokens),
      engine_exit_(engine_exit),
      most_unsent_bytes_(most_unsent_bytes) {
  for (int32_t i = 0; i < facts.media_helpers; ++i) {
    helpers_.push_back(std::make_unique<Helper>());
    helpers_.back()->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  }
  for (auto& helper : helpers_) {
    helper->thread = std::thread([this, raw = helper.get()] { Run(*raw); });
  }
}

MediaLink::~MediaLink() {
  Stop(FinishReason::kAbort, OkStatus());
  for (auto& helper : helpers_) {
    CloseDescriptor(&helper->socket);
    CloseDescriptor(&helper->wake);
  }
}

Status MediaLink::Submit(Work work) {
  {
    const MutexLock lock(&mutex_);
    if (stopping_) return Error(StatusCode::kUnavailable, "the engine has stopped");
    Group* group = nullptr;
    const size_t searched = std::min(queue_.size(), kSearchedGroups);
    for (auto each = queue_.rbegin(); each != queue_.rbegin() + static_cast<ptrdiff_t>(searched);
         ++each) {
      if (each->media == work.media) group = &*each;
    }
    for (auto& helper : helpers_) {
      if (helper->group.media == work.media) group = &helper->group;
    }
    if (group == nullptr) {
      const size_t bytes = SizeOf(*work.media);
      if (queue_.size() >= kMostGroups || queued_bytes_ + bytes > kMostBytes) {
        return Error(StatusCode::kResourceExhausted, "too many requests with media wait");
      }
      queued_bytes_ += bytes;
      queue_.push_back({work.media, work.ids, {}, bytes});
      group = &queue_.back();
    }
    group->works.push_back(std::move(work));
    waiting_.fetch_add(1, std::memory_order_relaxed);
  }
  WakeAll();
  return OkStatus();
}

bool MediaLink::Abort(StreamId stream) {
  if (waiting() == 0) return false;
  const auto take = [&](Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto it = group.works.begin(); it != group.works.end(); ++it) {
      if (it->stream != stream) continue;
      Work work = std::move(*it);
      group.works.erase(it);
      End(std::move(work), FinishReason::kAbort, OkStatus());
      return true;
    }
    return false;
  };
  bool found = false;
  {
    const MutexLock lock(&mutex_);
    for (auto it = queue_.begin(); it != queue_.end() && !found; ++it) {
      found = take(*it);
      if (!found || !it->works.empty()) continue;
      queued_bytes_ -= it->bytes;
      queue_.erase(it);
      break;
    }
    for (auto& helper : helpers_) {
      if (found) break;
      found = take(helper->group);
      if (helper->encoding != stream) continue;
      helper->aborted = true;
      return true;
    }
  }
  if (found) WakeAll();
  return found;
}

void MediaLink::Stop(FinishReason reason, const Status& error) {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  WakeAll();
  const MutexLock join(&join_mutex_);
  for (auto& helper : helpers_) {
    if (!helper->thread.joinable()) continue;
    helper->thread.join();
  }
  {
    const MutexLock lock(&mutex_);
    EndAll(reason, error);
  }
  TellEnded();
}

void MediaLink::AbortAll() {
  {
    const MutexLock lock(&mutex_);
    EndAll(FinishReason::kAbort, OkStatus());
  }
  WakeAll();
}

void MediaLink::EndAll(FinishReason reason, const Status& error) {
  for (Group& group : queue_) {
    for (Work& work : group.works) End(std::move(work), reason, error);
  }
  queue_.clear();
  queued_bytes_ = 0;
  for (auto& helper : helpers_) {
    for (Work& work : helper->group.works) End(std::move(work), reason, error);
    helper->group.works.clear();
    helper->aborted = helper->encoding != 0;
  }
}

void MediaLink::WakeAll() {
  const uint64_t one = 1;
  for (const auto& helper : helpers_) {
    [[maybe_unused]] const ssize_t written = write(helper->wake, &one, sizeof(one));
  }
}

void MediaLink::End(Work work, FinishReason reason, Status error) {
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  ended_.push_back({std::move(work), reason, std::move(error)});
}

void MediaLink::TellEnded() {
  std::vector<Ended> ended;
  {
    const MutexLock lock(&mutex_);
    ended.swap(ended_);
  }
  for (Ended& each : ended) {
    if (each.work.on_end) each.work.on_end();
    std::vector<TokenDelta> batch;
    batch.push_back(LastDelta(each.work.stream, each.reason, std::move(each.error)));
    each.work.sink->Deliver(std::move(batch));
  }
}

bool MediaLink::TakeGroup(Helper& helper) {
  const MutexLock lock(&mutex_);
  if (stopping_ || queue_.empty()) return false;
  helper.group = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= helper.group.bytes;
  return true;
}

void MediaLink::Run(Helper& helper) {
  while (true) {
    TellEnded();
    if (TakeGroup(helper)) {
      // The group's own pointers stay while it is this helper's.
      Complete(helper, Ask(helper, *helper.group.media, *helper.group.ids));
      continue;
    }
    {
      const MutexLock lock(&mutex_);
      if (stopping_) return;
      if (!queue_.empty() || !ended_.empty()) continue;
    }
    pollfd waits[2] = {{helper.wake, POLLIN, 0}, {helper.socket, POLLIN, 0}};
    poll(waits, 2, -1);
    if (waits[0].revents != 0) ClearEvent(helper.wake);
    // It says nothing unasked: it has died.
    if (helper.socket >= 0 && waits[1].revents != 0) CloseDescriptor(&helper.socket);
  }
}

void MediaLink::Complete(Helper& helper, const StatusOr<MediaInputs>& inputs) {
  while (true) {
    Work work;
    const bool has_room = !inputs.ok() || AwaitRoom(helper);
    {
      const MutexLock lock(&mutex_);
      if (stopping_) return;  // Stop() ends them
      if (helper.group.works.empty()) {
        helper.group = Group{};
        break;
      }
      if (!has_room) continue;  // one more has come
      work = std::move(helper.group.works.back());
      helper.group.works.pop_back();
      helper.encoding = work.stream;
      helper.aborted = false;
    }
    StatusOr<std::string> frame =
        inputs.ok() ? work.encode(*inputs) : StatusOr<std::string>(inputs.status());
    std::shared_ptr<void> held = frame.ok() ? Hold(frame->size()) : nullptr;
    const MutexLock lock(&mutex_);
    helper.encoding = 0;
    // Sent under the lock: an abort that does not find it here must find it there.
    if (helper.aborted) {
      End(std::move(work), FinishReason::kAbort, OkStatus());
    } else if (!frame.ok()) {
      End(std::move(work), FinishReason::kError, frame.status());
    } else if (!work.send(*std::move(frame), std::move(held))) {
      End(std::move(work), FinishReason::kError,
          Error(StatusCode::kUnavailable, "the engine failed"));
    } else {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  TellEnded();
}

bool MediaLink::AwaitRoom(Helper& helper) {
  while (unsent_bytes_->load(std::memory_order_relaxed) > most_unsent_bytes_) {
    pollfd wait{helper.wake, POLLIN, 0};
    poll(&wait, 1, static_cast<int>(kRoomInterval.count()));
    if (wait.revents != 0) ClearEvent(helper.wake);
    TellEnded();
    const MutexLock lock(&mutex_);
    if (stopping_ || helper.group.works.empty()) return false;
  }
  return true;
}

std::shared_ptr<void> MediaLink::Hold(size_t bytes) const {
  unsent_bytes_->fetch_add(bytes, std::memory_order_relaxed);
  return {nullptr, [all = unsent_bytes_, bytes](void*) {
            all->fetch_sub(bytes, std::memory_order_relaxed);
          }};
}

}  // namespace portico::sglang
