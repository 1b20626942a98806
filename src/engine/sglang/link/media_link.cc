#include "engine/sglang/link/media_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "message/msgpack/reader.h"
#include "text/json.h"

namespace portico::sglang {
namespace {

constexpr size_t kMostGroups = 64;
constexpr size_t kMostBytes = size_t{512} << 20;
// A process is started again within half a minute, and ends itself when one request takes more than one.
constexpr std::chrono::seconds kPatience{120};
constexpr size_t kMostHeadBytes = size_t{1} << 20;
constexpr size_t kMostMediaBytes = size_t{1} << 30;

Status NoHelper() {
  return Error(StatusCode::kUnavailable, "the process that reads media failed; try again");
}

// Not inlined: g++ 12 takes the empty tokens of a delta that it sees being moved for uninitialized memory.
[[gnu::noinline]] TokenDelta LastDelta(StreamId stream, FinishReason reason, Status error) {
  TokenDelta delta;
  delta.stream = stream;
  delta.finish = reason;
  if (reason == FinishReason::kError) delta.error = std::move(error);
  return delta;
}

std::string_view ViewOf(const uint32_t& number) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

std::string RequestHead(const RequestMedia& media, const std::vector<TokenId>& ids,
                        int32_t max_input_tokens) {
  JsonArray listed;
  listed.reserve(ids.size());
  for (const TokenId id : ids) listed.emplace_back(static_cast<int64_t>(id));
  JsonArray items;
  for (const MediaItem& item : media.items) {
    items.push_back(JsonObject{{"kind", std::string(NameOf(item.kind))},
                               {"size", static_cast<int64_t>(item.bytes->size())},
                               {"detail", item.detail.empty() ? Json() : Json(item.detail)}});
  }
  JsonObject head{{"text", media.text.empty() ? Json() : Json(media.text)},
                  {"ids", Json(std::move(listed))},
                  {"media", Json(std::move(items))}};
  if (max_input_tokens > 0) {
    head.emplace_back("max_input_tokens", static_cast<int64_t>(max_input_tokens));
  }
  return Json(std::move(head)).Dump();
}

bool ReadIds(std::string_view bytes, std::vector<TokenId>* ids) {
  ids->resize(bytes.size() / sizeof(int64_t));
  for (size_t i = 0; i < ids->size(); ++i) {
    int64_t id = 0;
    std::memcpy(&id, bytes.data() + i * sizeof(id), sizeof(id));
    if (id < 0 || id > INT32_MAX) return false;
    (*ids)[i] = static_cast<TokenId>(id);
  }
  return true;
}

size_t SizeOf(const RequestMedia& media) {
  size_t bytes = 0;
  for (const MediaItem& item : media.items) bytes += item.bytes->size();
  return bytes;
}

void CloseDescriptor(int* socket) {
  if (*socket >= 0) close(*socket);
  *socket = -1;
}

void ClearEvent(int event) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event, &count, sizeof(count));
}

}  // namespace

MediaLink::MediaLink(const Facts& facts)
    : address_(facts.media_socket), max_input_tokens_(facts.max_input_tokens) {
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
    for (Group& each : queue_) {
      if (each.media == work.media) group = &each;
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
    {
      const MutexLock lock(&mutex_);
      if (stopping_) return;  // Stop() ends them
      if (helper.group.works.empty()) {
        helper.group = Group{};
        break;
      }
      work = std::move(helper.group.works.back());
      helper.group.works.pop_back();
      helper.encoding = work.stream;
      helper.aborted = false;
    }
    StatusOr<std::string> frame =
        inputs.ok() ? work.encode(*inputs) : StatusOr<std::string>(inputs.status());
    const MutexLock lock(&mutex_);
    helper.encoding = 0;
    // Sent under the lock: an abort that does not find it here must find it there.
    if (helper.aborted) {
      End(std::move(work), FinishReason::kAbort, OkStatus());
    } else if (!frame.ok()) {
      End(std::move(work), FinishReason::kError, frame.status());
    } else if (!work.send(*std::move(frame))) {
      End(std::move(work), FinishReason::kError,
          Error(StatusCode::kUnavailable, "the engine failed"));
    } else {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  TellEnded();
}

void MediaLink::Connect(Helper& helper) {
  if (helper.socket >= 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (address_.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, address_.data(), address_.size());
  helper.socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (helper.socket >= 0 &&
      connect(helper.socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    CloseDescriptor(&helper.socket);
  }
}

bool MediaLink::Await(Helper& helper, short events, TimePoint until) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waits[2] = {{helper.wake, POLLIN, 0}, {helper.socket, events, 0}};
    poll(waits, 2, static_cast<int>(left));
    if (waits[0].revents != 0) {
      ClearEvent(helper.wake);
      TellEnded();
      const MutexLock lock(&mutex_);
      if (stopping_) return false;
    }
    if (waits[1].revents != 0) return true;
  }
}

bool MediaLink::Write(Helper& helper, std::string_view bytes, TimePoint until) {
  while (!bytes.empty()) {
    if (!Await(helper, POLLOUT, until)) return false;
    const ssize_t size = send(helper.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

bool MediaLink::Read(Helper& helper, size_t size, std::string* bytes, TimePoint until) {
  // Grown as bytes come, not by what a length says.
  constexpr size_t kBlock = size_t{1} << 20;
  bytes->clear();
  while (bytes->size() < size) {
    if (!Await(helper, POLLIN, until)) return false;
    const size_t at = bytes->size();
    bytes->resize(std::min(size, at + kBlock));
    const ssize_t got = recv(helper.socket, bytes->data() + at, bytes->size() - at, 0);
    bytes->resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
  }
  return true;
}

StatusOr<MediaInputs> MediaLink::Ask(Helper& helper, const RequestMedia& media,
                                     const std::vector<TokenId>& ids) {
  const TimePoint until = Clock::now() + kPatience;
  Connect(helper);
  if (helper.socket < 0) return NoHelper();
  auto inputs = Exchange(helper, RequestHead(media, ids, max_input_tokens_), media, until);
  if (!inputs.ok() && inputs.status().code() == StatusCode::kUnavailable) {
    CloseDescriptor(&helper.socket);
  }
  return inputs;
}

StatusOr<MediaInputs> MediaLink::Exchange(Helper& helper, std::string_view head,
                                          const RequestMedia& media, TimePoint until) {
  const auto head_size = static_cast<uint32_t>(head.size());
  bool good = Write(helper, ViewOf(head_size), until) && Write(helper, head, until);
  for (const MediaItem& item : media.items) good = good && Write(helper, *item.bytes, until);
  std::string bytes;
  uint32_t size = 0;
  if (!good || !Read(helper, sizeof(size), &bytes, until)) return NoHelper();
  std::memcpy(&size, bytes.data(), sizeof(size));
  if (size > kMostHeadBytes || !Read(helper, size, &bytes, until)) return NoHelper();
  const auto reply = Json::Parse(bytes);
  if (!reply.ok() || !reply->is_object()) return NoHelper();
  if (reply->Find("error") != nullptr) {
    const bool theirs = reply->GetInt("status", 500) == 400;
    return Error(theirs ? StatusCode::kInvalidArgument : StatusCode::kInternal,
                 fmt::format("the media cannot be read: {:.1000}", reply->GetString("error")),
                 theirs ? media.field() : std::string_view());
  }
  MediaInputs inputs;
  const auto id_bytes = static_cast<uint64_t>(reply->GetInt("ids", -1));
  const auto media_bytes = static_cast<uint64_t>(reply->GetInt("media", -1));
  if (media_bytes > kMostMediaBytes || id_bytes % sizeof(int64_t) != 0 ||
      id_bytes > kMostMediaBytes || !Read(helper, id_bytes, &bytes, until) ||
      !ReadIds(bytes, &inputs.ids) || !Read(helper, media_bytes, &inputs.encoded, until)) {
    return NoHelper();
  }
  msgpack::Reader reader(inputs.encoded);
  if (!reader.Skip() || !reader.done()) {
    return Error(StatusCode::kUnavailable, "the process that reads media sent no message");
  }
  return inputs;
}

}  // namespace portico::sglang
