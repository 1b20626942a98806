#include "engine/sglang/launch/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/log.h"

namespace portico::sglang {
namespace {

constexpr size_t kMaxEventBytes = 16 << 20;  // a manifest is 150 KB
constexpr int kEventDescriptor = 3;
constexpr std::chrono::seconds kTimeToEnd{10};
constexpr std::chrono::seconds kExceptionCounts{60};  // an older one is not why it ends

struct Pipe {
  int read = -1;
  int write = -1;
};

// A GPU's driver takes seconds to give its memory back; then the process is ended by force.
void Reap(pid_t pid) {
  const TimePoint until = Clock::now() + kTimeToEnd;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() > until) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return;
    }
    usleep(10'000);
  }
}

void CloseFd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

int OpenProcess(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

StatusOr<std::unique_ptr<Launcher>> Launcher::Start(const LaunchOptions& options) {
  std::unique_ptr<Launcher> launcher(new Launcher);
  int input[2];
  int events[2];
  int log[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(events, O_CLOEXEC) != 0 || pipe2(log, O_CLOEXEC) != 0) {
    return Error(StatusCode::kUnavailable, fmt::format("no pipe: {}", std::strerror(errno)));
  }
  launcher->input_ = input[1];
  launcher->events_ = events[0];
  launcher->log_ = log[0];

  // A group of its own: Ctrl-C is for this program, which lets requests finish first.
  ChildProgram program{
      .words = {options.python, "-u", options.script, "--portico", "--ipc-dir", options.folder,
                "--media-helpers", std::to_string(options.media_helpers)},
      .descriptors = {{input[0], STDIN_FILENO},
                      {log[1], STDOUT_FILENO},
                      {log[1], STDERR_FILENO},
                      {events[1], kEventDescriptor}},
      .last = kEventDescriptor,
      .more_names = options.environment};
  if (options.reasoning_parser != "auto") {
    program.words.insert(program.words.end(), {"--reasoning-parser", options.reasoning_parser});
  }
  if (options.transport != "ipc") {
    program.words.insert(program.words.end(), {"--transport", options.transport});
  }
  if (!options.front_end_has.empty()) {
    program.words.insert(
        program.words.end(),
        {"--front-end-has", fmt::format("{}", fmt::join(options.front_end_has, ","))});
  }
  program.words.emplace_back("--");
  program.words.insert(program.words.end(), options.flags.begin(), options.flags.end());
  const int failed = StartChild(std::move(program), &launcher->pid_);
  close(input[0]);
  close(events[1]);
  close(log[1]);
  if (failed != 0) {
    return Error(failed == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable,
                 fmt::format("{} cannot be started: {}; --sglang-python names the Python that has "
                             "SGLang",
                             options.python, std::strerror(failed)));
  }
  launcher->pid_fd_ = OpenProcess(launcher->pid_);
  launcher->log_thread_ = std::thread([raw = launcher.get()] {
    raw->CopyLog();
    const MutexLock lock(&raw->log_mutex_);
    raw->log_ended_ = true;
    raw->log_changed_.NotifyAll();
  });
  return launcher;
}

Launcher::~Launcher() {
  CloseFd(&input_);
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    Reap(pid_);
  }
  if (log_thread_.joinable()) log_thread_.join();
  CloseFd(&events_);
  CloseFd(&log_);
  CloseFd(&pid_fd_);
}

// Lines of the engine, and what its progress bars write over and over. Ends with the last process that has the pipe,
// or a second after the launcher where one of its children is stuck.
void Launcher::CopyLog() {
  std::string line;
  char block[4096];
  bool ended = false;
  while (true) {
    pollfd waits[2] = {{log_, POLLIN, 0}, {ended ? -1 : pid_fd_, POLLIN, 0}};
    if (poll(waits, 2, ended ? 1000 : -1) == 0) return;
    if (waits[1].revents != 0) ended = true;
    if (waits[0].revents == 0) continue;
    const ssize_t size = read(log_, block, sizeof(block));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    for (const char c : std::string_view(block, static_cast<size_t>(size))) {
      if (c != '\n' && c != '\r' && line.size() < 8192) {
        line.push_back(c);
        continue;
      }
      if (c == '\n' && !line.empty()) LogLine(line);
      line.clear();
    }
  }
}

void Launcher::LogLine(const std::string& line) {
  LogInfo("sglang | {}", line);
  const MutexLock lock(&log_mutex_);
  if (tracebacks_.Add(line)) exception_time_ = Clock::now();
}

std::string Launcher::LastException() {
  const TimePoint now = Clock::now();
  const MutexLock lock(&log_mutex_);
  while (!log_ended_ && log_changed_.WaitUntil(&log_mutex_, now + kTimeToEnd)) {
  }
  return exception_time_ + kExceptionCounts < now ? "" : tracebacks_.last();
}

std::string Launcher::WithException(std::string said) {
  const std::string exception = LastException();
  const size_t name = exception.find(": ");
  const std::string message = name == std::string::npos ? exception : exception.substr(name + 2);
  if (exception.empty() || said.find(message) != std::string::npos) return said;
  return fmt::format("{}; the last exception in its log is {}", said, exception);
}

bool Launcher::ReadLine(std::string* line) {
  while (true) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      *line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return true;
    }
    if (unread_.size() > kMaxEventBytes) return false;
    // A scheduler may have inherited the pipe: its end is not the launcher's.
    pollfd waits[2] = {{events_, POLLIN, 0}, {pid_fd_, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return false;
    if (waits[0].revents == 0) {
      if (waits[1].revents != 0) return false;
      continue;
    }
    char block[65536];
    const ssize_t size = read(events_, block, sizeof(block));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    unread_.append(block, static_cast<size_t>(size));
  }
}

StatusOr<Json> Launcher::Await(std::string_view event, const Progress& progress) {
  std::string line;
  while (ReadLine(&line)) {
    auto json = Json::Parse(line);
    if (!json.ok()) {
      return Error(StatusCode::kUnavailable,
                   fmt::format("SGLang's launcher printed no event: {:.100}", line));
    }
    const std::string name = json->GetString("event");
    if (name == event) return *std::move(json);
    if (name == "progress") {
      if (progress) progress(json->GetString("stage"));
    } else if (name == "failed") {
      const bool wire = json->GetBool("wire", false);
      std::string why = json->GetString("message");
      if (!wire) why = WithException(std::move(why));
      return Error(wire ? StatusCode::kUnimplemented : StatusCode::kUnavailable,
                   fmt::format("SGLang cannot be started: {}", why));
    }
  }
  const std::string exception = LastException();
  return Error(StatusCode::kUnavailable,
               fmt::format("SGLang's launcher has ended{}{}; its log says more",
                           exception.empty() ? " without a reason" : ": ", exception));
}

Status Launcher::Tell(std::string line) {
  line.push_back('\n');
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t size = write(input_, rest.data(), rest.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return Error(StatusCode::kUnavailable, "SGLang's launcher has ended");
    rest.remove_prefix(static_cast<size_t>(size));
  }
  return OkStatus();
}

std::string Launcher::LastWords() {
  std::string line;
  std::string words;
  while (ReadLine(&line)) {
    const auto json = Json::Parse(line);
    if (json.ok() && json->GetString("event") == "failed") words = json->GetString("message");
  }
  return WithException(words.empty() ? "the process has ended" : words);
}

}  // namespace portico::sglang
