#include "app/gateway/worker_logs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace portico {
namespace {

constexpr size_t kLongestLine = 16384;  // a longer one is copied in parts
constexpr std::chrono::milliseconds kPatienceAtEnd{1000};

// One write: what another thread logs does not come in between. Nobody can be told if it fails.
void WriteMarked(std::string_view name, std::string_view line) {
  const std::string marked = fmt::format("[{}] {}\n", name, line);
  for (size_t sent = 0; sent < marked.size();) {
    const ssize_t size = write(STDERR_FILENO, marked.data() + sent, marked.size() - sent);
    if (size < 0 && errno != EINTR) return;
    sent += static_cast<size_t>(std::max<ssize_t>(size, 0));
  }
}

}  // namespace

WorkerLogs::~WorkerLogs() {
  if (!thread_.joinable()) return;
  int wake = -1;
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    wake = std::exchange(wake_[1], -1);
  }
  close(wake);
  thread_.join();
  const MutexLock lock(&mutex_);
  for (const Source& source : sources_) close(source.fd);
  close(wake_[0]);
}

StatusOr<int> WorkerLogs::Open(std::string name) {
  int ends[2];
  const MutexLock lock(&mutex_);
  if ((wake_[0] < 0 && pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) || pipe2(ends, O_CLOEXEC) != 0) {
    return Error(StatusCode::kResourceExhausted, fmt::format("pipe: {}", std::strerror(errno)));
  }
  sources_.push_back({.fd = ends[0], .name = std::move(name), .line = {}});
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  const ssize_t ignored = write(wake_[1], "s", 1);  // full: it is awake anyway
  static_cast<void>(ignored);
  return ends[1];
}

void WorkerLogs::WaitForEnd(const std::string& name, Duration patience) {
  const TimePoint deadline = Clock::now() + patience;
  const MutexLock lock(&mutex_);
  const auto open = [this, &name]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::any_of(sources_.begin(), sources_.end(),
                       [&name](const Source& source) { return source.name == name; });
  };
  while (open() && Clock::now() < deadline) ended_.WaitUntil(&mutex_, deadline);
}

// False: all its writers have ended.
bool WorkerLogs::Read(Source& source) {
  char block[4096];
  const ssize_t size = read(source.fd, block, sizeof(block));
  if (size < 0 && errno == EINTR) return true;
  const bool over = size <= 0;
  for (const char c : std::string_view(block, over ? 0 : static_cast<size_t>(size))) {
    if (c != '\n' && source.line.size() < kLongestLine) {
      source.line.push_back(c);
      continue;
    }
    WriteMarked(source.name, source.line);
    source.line.clear();
    if (c != '\n') source.line.push_back(c);
  }
  if (over && !source.line.empty()) WriteMarked(source.name, source.line);
  return !over;
}

void WorkerLogs::Run() {
  std::vector<Source*> sources;
  std::vector<pollfd> waits;
  TimePoint deadline = TimePoint::max();
  while (true) {
    sources.clear();
    waits.clear();
    {
      const MutexLock lock(&mutex_);
      for (Source& source : sources_) {
        sources.push_back(&source);
        waits.push_back({source.fd, POLLIN, 0});
      }
      if (stopping_ && deadline == TimePoint::max()) deadline = Clock::now() + kPatienceAtEnd;
      if (stopping_ && (sources.empty() || Clock::now() >= deadline)) return;
      waits.push_back({stopping_ ? -1 : wake_[0], POLLIN, 0});
    }
    if (poll(waits.data(), waits.size(), deadline == TimePoint::max() ? -1 : 50) < 0) continue;
    if (waits.back().revents != 0) {
      char some[64];
      while (read(waits.back().fd, some, sizeof(some)) > 0) {
      }
    }
    for (size_t i = 0; i < sources.size(); ++i) {
      if (waits[i].revents == 0 || Read(*sources[i])) continue;
      const MutexLock lock(&mutex_);
      close(sources[i]->fd);
      sources_.remove_if([source = sources[i]](const Source& one) { return &one == source; });
      ended_.NotifyAll();
    }
  }
}

}  // namespace portico
