#include "media/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/child_process.h"

namespace portico::media {
namespace {

constexpr int kPatienceMs = 10000;
constexpr char kName[] = "portico-media";

std::atomic<int> running{0};

// Its path, or "".
std::string Find() {
  if (const char* given = std::getenv("PORTICO_MEDIA"))
    return access(given, X_OK) == 0 ? given : "";
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  if (size <= 0) return "";
  std::string folder(self, static_cast<size_t>(size));
  folder.resize(folder.rfind('/') + 1);
  for (const std::string& place : {folder, folder + "../libexec/portico/"}) {
    std::string path = place + kName;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace

Status Helper::Installed() {
  if (!Find().empty()) return OkStatus();
  return Error(StatusCode::kUnavailable,
               "the program portico-media is not installed (it is built where libavcodec-dev, "
               "libavformat-dev and libswresample-dev are)");
}

StatusOr<std::unique_ptr<Helper>> Helper::Start(const std::vector<std::string>& words) {
  const std::string path = Find();
  if (path.empty()) return Installed();
  if (running.fetch_add(1) >= kMost) {
    running.fetch_sub(1);
    return Error(StatusCode::kResourceExhausted, "too many sounds are converted at once");
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    running.fetch_sub(1);
    return Error(StatusCode::kResourceExhausted, "no socket is left");
  }
  ChildProgram program{.words = {path},
                       .descriptors = {{ends[1], STDIN_FILENO}, {ends[1], STDOUT_FILENO}},
                       .own_group = false};
  program.words.insert(program.words.end(), words.begin(), words.end());
  pid_t pid = -1;
  const int failed = StartChild(std::move(program), &pid);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    running.fetch_sub(1);
    return Error(StatusCode::kUnavailable, "portico-media cannot be started");
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<Helper>(new Helper(pid, ends[0]));
}

Helper::~Helper() {
  close(fd_);
  if (pid_ > 0) Reap(/*kill_it=*/true);
  running.fetch_sub(1);
}

int Helper::Reap(bool kill_it) {
  if (kill_it) kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Helper::Poll(short events, short* ready) const {
  pollfd one{fd_, events, 0};
  int got = 0;
  do {
    got = poll(&one, 1, kPatienceMs);
  } while (got < 0 && errno == EINTR);
  *ready = one.revents;
  return got > 0;
}

bool Helper::Drain(std::string* out) {
  char block[1 << 15];
  while (true) {
    const ssize_t got = recv(fd_, block, sizeof block, 0);
    if (got > 0) {
      out->append(block, static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }
}

Status Helper::Write(std::string_view in, std::string* out) {
  while (!in.empty()) {
    const ssize_t sent = send(fd_, in.data(), in.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      in.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    // It has ended: its exit status tells why.
    if (errno != EAGAIN && errno != EWOULDBLOCK) return OkStatus();
    short ready = 0;
    if (!Poll(POLLIN | POLLOUT, &ready)) {
      return Error(StatusCode::kDeadlineExceeded, "the sound's converter makes no progress");
    }
    if ((ready & POLLIN) != 0 && !Drain(out)) return OkStatus();
  }
  Drain(out);
  return OkStatus();
}

StatusOr<int> Helper::Finish(std::string* out, size_t most) {
  shutdown(fd_, SHUT_WR);
  short ready = 0;
  while (out->size() <= most) {
    if (!Poll(POLLIN, &ready)) {
      return Error(StatusCode::kDeadlineExceeded, "the sound's converter makes no progress");
    }
    if (!Drain(out)) break;
  }
  return Reap(/*kill_it=*/out->size() > most);
}

}  // namespace portico::media
