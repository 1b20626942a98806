// What is said between a MediaLink and its processes.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/sglang/link/media_link.h"
#include "message/msgpack/reader.h"
#include "text/json.h"

namespace portico::sglang {
namespace {

// A process is started again within half a minute, and ends itself when one request takes more than one.
constexpr std::chrono::seconds kPatience{120};
// An engine that ends takes its processes with it, and they may be seen to end first.
constexpr std::chrono::seconds kEngineEnds{5};
constexpr size_t kMostAskedBytes = size_t{64} << 20;
constexpr size_t kMostHeadBytes = size_t{1} << 20;
constexpr size_t kMostMediaBytes = size_t{1} << 30;

Status NoHelper() {
  return Error(StatusCode::kUnavailable, "the process that reads media failed; try again", {},
               kMediaFailed);
}

Status NoMessage() {
  return Error(StatusCode::kInternal, "the process that reads media sent no message", {},
               kMediaFailed);
}

Status Unreadable(const RequestMedia& media, std::string_view why) {
  return Error(StatusCode::kInvalidArgument, fmt::format("the media cannot be read: {}", why),
               media.field());
}

Status CheckMade(const MediaInputs& inputs, const RequestMedia& media) {
  const auto bytes = static_cast<int64_t>(inputs.encoded.size());
  if (bytes <= media.max_made_bytes / media.choices) return OkStatus();
  return Error(StatusCode::kInvalidArgument,
               fmt::format("the media take {} bytes of each of {} choices; a request may take {}: "
                           "--max-request-cost-bytes",
                           bytes, media.choices, media.max_made_bytes),
               media.choices > 1 ? std::string_view("n") : media.field());
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

}  // namespace

void MediaLink::Connect(Helper& helper) {
  // It has said something unasked: it has died.
  pollfd wait{helper.socket, POLLIN, 0};
  if (helper.socket >= 0 && poll(&wait, 1, 0) > 0) CloseDescriptor(&helper.socket);
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

bool MediaLink::Await(Helper& helper, int descriptor, short events, TimePoint until) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    helper.late = left <= 0;
    if (helper.late) return false;
    pollfd waits[2] = {{helper.wake, POLLIN, 0}, {descriptor, events, 0}};
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
    if (!Await(helper, helper.socket, POLLOUT, until)) return false;
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
    if (!Await(helper, helper.socket, POLLIN, until)) return false;
    const size_t at = bytes->size();
    bytes->resize(std::min(size, at + kBlock));
    const ssize_t got = recv(helper.socket, bytes->data() + at, bytes->size() - at, 0);
    bytes->resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
  }
  return true;
}

Status MediaLink::Lost(Helper& helper, const RequestMedia& media) {
  {
    const MutexLock lock(&mutex_);
    if (helper.late || stopping_) return NoHelper();
  }
  if (engine_exit_ >= 0 && Await(helper, engine_exit_, POLLIN, Clock::now() + kEngineEnds)) {
    return Error(StatusCode::kUnavailable, "the engine failed while the request was running");
  }
  return Unreadable(media, "the process that reads media has ended at them");
}

StatusOr<MediaInputs> MediaLink::Ask(Helper& helper, const RequestMedia& media,
                                     const std::vector<TokenId>& ids) {
  const TimePoint until = Clock::now() + kPatience;
  Connect(helper);
  if (helper.socket < 0) return NoHelper();
  const std::string head = RequestHead(media, ids, max_input_tokens_);
  if (head.size() > kMostAskedBytes) return Unreadable(media, "the prompt is too long");
  auto inputs = Exchange(helper, head, media, until);
  // Of an error only a whole answer leaves something to be said on this connection.
  if (!inputs.ok() && !helper.answered) CloseDescriptor(&helper.socket);
  return inputs;
}

StatusOr<MediaInputs> MediaLink::Exchange(Helper& helper, std::string_view head,
                                          const RequestMedia& media, TimePoint until) {
  helper.answered = false;
  const auto head_size = static_cast<uint32_t>(head.size());
  bool good = Write(helper, ViewOf(head_size), until) && Write(helper, head, until);
  for (const MediaItem& item : media.items) good = good && Write(helper, *item.bytes, until);
  if (!good) return NoHelper();
  std::string bytes;
  uint32_t size = 0;
  if (!Read(helper, sizeof(size), &bytes, until)) return Lost(helper, media);
  std::memcpy(&size, bytes.data(), sizeof(size));
  if (size > kMostHeadBytes) return NoMessage();
  if (!Read(helper, size, &bytes, until)) return Lost(helper, media);
  const auto reply = Json::Parse(bytes);
  if (!reply.ok() || !reply->is_object()) return NoMessage();
  if (reply->Find("error") == nullptr) return ReadInputs(helper, *reply, media, until);
  helper.answered = !reply->GetBool("ends", false);
  const std::string why = fmt::format("{:.1000}", reply->GetString("error"));
  if (reply->GetInt("status", 500) == 400) return Unreadable(media, why);
  return Error(StatusCode::kInternal, fmt::format("the media cannot be read: {}", why), {},
               kMediaFailed);
}

StatusOr<MediaInputs> MediaLink::ReadInputs(Helper& helper, const Json& reply,
                                            const RequestMedia& media, TimePoint until) {
  MediaInputs inputs;
  std::string bytes;
  const auto id_bytes = static_cast<uint64_t>(reply.GetInt("ids", -1));
  const auto media_bytes = static_cast<uint64_t>(reply.GetInt("media", -1));
  if (media_bytes > kMostMediaBytes || id_bytes > kMostMediaBytes ||
      id_bytes % sizeof(int64_t) != 0) {
    return NoMessage();
  }
  if (!Read(helper, id_bytes, &bytes, until)) return Lost(helper, media);
  if (!ReadIds(bytes, &inputs.ids)) return NoMessage();
  if (!Read(helper, media_bytes, &inputs.encoded, until)) return Lost(helper, media);
  helper.answered = true;
  msgpack::Reader reader(inputs.encoded);
  if (!reader.Skip() || !reader.done()) return NoMessage();
  PORTICO_RETURN_IF_ERROR(CheckMade(inputs, media));
  return inputs;
}

}  // namespace portico::sglang
