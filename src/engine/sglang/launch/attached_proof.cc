#include "engine/sglang/launch/attached_proof.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "text/json.h"

namespace portico::sglang {
namespace {

constexpr std::chrono::seconds kProofTime{30};
constexpr size_t kMaxProofReply = 64 << 10;
constexpr int kFieldsBeforeStart = 19;  // of /proc/PID/stat, behind the name

struct ProofSocket {
  int descriptor = -1;
  ~ProofSocket() {
    if (descriptor >= 0) close(descriptor);
  }
};

// False: the time is over.
bool AwaitSocket(int descriptor, short events, TimePoint until) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{descriptor, events, 0};
    const int ready = poll(&wait, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

Status NoProof(std::string_view why) {
  return Error(
      StatusCode::kUnavailable,
      fmt::format("SGLang's launcher does not say whether it reads Portico's messages: {}", why));
}

}  // namespace

StatusOr<int64_t> ProcessStart(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  const std::string stat = text.str();
  // The name may have spaces and brackets of its own.
  const size_t name_end = stat.rfind(')');
  if (!file || name_end == std::string::npos) {
    return Error(StatusCode::kNotFound, fmt::format("process {} does not run", pid));
  }
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kFieldsBeforeStart; ++i) fields >> field;
  int64_t start = 0;
  if (fields >> start) return start;
  return Error(StatusCode::kNotFound, fmt::format("/proc/{}/stat cannot be read", pid));
}

Status ProveAttached(const std::string& address, const std::string& line) {
  const TimePoint until = Clock::now() + kProofTime;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.size() >= sizeof(name.sun_path)) return NoProof("its address is too long");
  std::memcpy(name.sun_path, address.data(), address.size());
  ProofSocket to{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (to.descriptor < 0 ||
      connect(to.descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return NoProof(std::strerror(errno));
  }
  const std::string sent = line + "\n";
  for (size_t at = 0; at < sent.size();) {
    if (!AwaitSocket(to.descriptor, POLLOUT, until)) return NoProof("it takes too long");
    const ssize_t size = send(to.descriptor, sent.data() + at, sent.size() - at, MSG_NOSIGNAL);
    if (size < 0 && errno != EAGAIN && errno != EINTR) return NoProof(std::strerror(errno));
    if (size > 0) at += static_cast<size_t>(size);
  }
  std::string reply;
  while (reply.find('\n') == std::string::npos) {
    if (!AwaitSocket(to.descriptor, POLLIN, until)) return NoProof("it takes too long");
    char bytes[4096];
    const ssize_t size = recv(to.descriptor, bytes, sizeof(bytes), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0 || reply.size() > kMaxProofReply) return NoProof("it has hung up");
    reply.append(bytes, static_cast<size_t>(size));
  }
  const auto json = Json::Parse(std::string_view(reply).substr(0, reply.find('\n')));
  if (!json.ok() || !json->is_object()) return NoProof("its answer is no JSON");
  if (json->GetString("event") == "proved") return OkStatus();
  return Error(StatusCode::kUnimplemented, json->GetString("message", "SGLang reads it otherwise"));
}

}  // namespace portico::sglang
