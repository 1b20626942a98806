#include "engine/sglang/launch/listeners.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/log.h"
#include "text/json.h"

namespace portico::sglang {
namespace {

constexpr std::chrono::seconds kHandOverTime{30};
constexpr std::chrono::milliseconds kAskAgainAfter{200};
constexpr size_t kHandedOver = 3;
constexpr size_t kMaxHandOverReply = 4096;

Status NotHanded(std::string_view why) {
  return Error(StatusCode::kUnavailable,
               fmt::format("SGLang's launcher does not hand over its sockets: {}", why));
}

// Whoever can reach the sockets can end the engine, or read what it is asked.
Status CheckSocketFolder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct stat found{};
  if (stat(folder.c_str(), &found) != 0) {
    return Error(StatusCode::kNotFound,
                 fmt::format("cannot read {}: {}", folder, std::strerror(errno)));
  }
  if (found.st_uid == geteuid() && (found.st_mode & (S_IRWXG | S_IRWXO)) == 0) return OkStatus();
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("the folder of the sockets, {}, is open to others, or belongs to "
                           "another user",
                           folder));
}

// Of "tcp://HOST:PORT".
std::string_view HostOf(std::string_view address) {
  address.remove_prefix(std::string_view("tcp://").size());
  address = address.substr(0, address.rfind(':'));
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  return address;
}

Status CheckAddress(const Facts& facts, const std::string& address) {
  constexpr std::string_view kScheme = "ipc://";
  if (address.starts_with(kScheme)) return CheckSocketFolder(address.substr(kScheme.size()));
  if (!IsTcpAddress(address)) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{} is no address of a socket: ipc and tcp are known", address));
  }
  if (IsLoopbackAddress(address)) {
    if (!facts.listeners.empty()) return OkStatus();
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("nobody holds {} for front ends, so that any user could have taken "
                             "it; start SGLang with this Portico's launcher",
                             address));
  }
  const char* peers = std::getenv("SGLANG_ZMQ_ALLOWED_PEERS");
  if (peers != nullptr && *peers != '\0') return OkStatus();
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("{} can be reached from other machines, and SGLang's schedulers do not "
                           "say who they are; SGLANG_ZMQ_ALLOWED_PEERS lists the IP addresses "
                           "that may connect, those of this machine's own schedulers too ({})",
                           address, HostOf(address)));
}

// The launcher's line and what comes with it; descriptors that are not wanted are closed.
Status ReceiveLine(int connection, std::string* line, std::vector<int>* descriptors) {
  const TimePoint until = Clock::now() + kHandOverTime;
  while (line->find('\n') == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{connection, POLLIN, 0};
    if (left <= 0) return NotHanded("it takes too long");
    if (poll(&wait, 1, static_cast<int>(left)) <= 0) continue;
    char bytes[1024];
    iovec place{bytes, sizeof(bytes)};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) return NotHanded("it has hung up");
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
        descriptors->push_back(descriptor);
      }
    }
    line->append(bytes, static_cast<size_t>(size));
    if (line->size() > kMaxHandOverReply) return NotHanded("its answer is too long");
  }
  return OkStatus();
}

}  // namespace

bool IsTcpAddress(std::string_view address) { return address.starts_with("tcp://"); }

bool IsLoopbackAddress(std::string_view address) {
  return address.starts_with("tcp://127.") || address.starts_with("tcp://[::1]:") ||
         address.starts_with("tcp://localhost:");
}

Status CheckSocketAddresses(const Facts& facts) {
  for (const std::string* address :
       {&facts.scheduler_input, &facts.tokenizer, &facts.detokenizer}) {
    PORTICO_RETURN_IF_ERROR(CheckAddress(facts, *address));
    if (IsTcpAddress(*address) != IsTcpAddress(facts.scheduler_input) ||
        IsLoopbackAddress(*address) != IsLoopbackAddress(facts.scheduler_input)) {
      return Error(StatusCode::kInvalidArgument, fmt::format("{} and {} are not of one transport",
                                                             facts.scheduler_input, *address));
    }
  }
  for (const std::string* path : {&facts.listeners, &facts.proof_socket}) {
    if (!path->empty()) PORTICO_RETURN_IF_ERROR(CheckSocketFolder(*path));
  }
  return OkStatus();
}

Listeners::~Listeners() {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) close(descriptor);
  }
  if (lease_ >= 0) close(lease_);
}

void Listeners::Swap(Listeners* other) {
  std::swap(lease_, other->lease_);
  descriptors_.swap(other->descriptors_);
}

int Listeners::Take(size_t index) {
  return index < descriptors_.size() ? std::exchange(descriptors_[index], -1) : -1;
}

StatusOr<Listeners> Listeners::TakeOver(const Facts& facts, Duration patience) {
  const TimePoint until = Clock::now() + patience;
  for (bool told = false;; told = true) {
    bool busy = false;
    auto taken = Ask(facts, &busy);
    if (taken.ok() || !busy || Clock::now() >= until) return taken;
    if (!told) {
      LogInfo("another front end serves SGLang's sockets; waiting up to {:.0f} s for it to end",
              Seconds(patience));
    }
    std::this_thread::sleep_for(kAskAgainAfter);
  }
}

StatusOr<Listeners> Listeners::Ask(const Facts& facts, bool* busy) {
  const std::string& path = facts.listeners;
  Listeners taken;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return NotHanded("its address is too long");
  std::memcpy(name.sun_path, path.data(), path.size());
  taken.lease_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (taken.lease_ < 0 ||
      connect(taken.lease_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return NotHanded(std::strerror(errno));
  }
  std::string line;
  PORTICO_RETURN_IF_ERROR(ReceiveLine(taken.lease_, &line, &taken.descriptors_));
  const auto json = Json::Parse(std::string_view(line).substr(0, line.find('\n')));
  if (!json.ok() || !json->is_object()) return NotHanded("its answer is no JSON");
  if (json->GetString("event") != "sockets") {
    *busy = json->GetBool("busy", false);
    return NotHanded(json->GetString("message", "it gives no reason"));
  }
  const size_t wanted = IsLoopbackAddress(facts.scheduler_input) ? kHandedOver : 0;
  if (taken.descriptors_.size() != wanted) {
    return NotHanded(fmt::format("there are {}, not {}", taken.descriptors_.size(), wanted));
  }
  return taken;
}

}  // namespace portico::sglang
