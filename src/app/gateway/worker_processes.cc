#include "app/gateway/worker_processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/log.h"

namespace portico {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(500);
constexpr Duration kLongestPause = std::chrono::seconds(30);
constexpr Duration kLastWords = std::chrono::seconds(1);

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("status {}", WEXITSTATUS(status));
}

Duration PauseAfter(int failures) {
  return std::min<Duration>(kFirstPause * (1 << std::min(failures - 1, 16)), kLongestPause);
}

// What pipe, fork and exec say where something is lacking that may be there again later.
StatusCode CodeOfStart(int why) {
  const bool lacking = why == EMFILE || why == ENFILE || why == EAGAIN || why == ENOMEM;
  return lacking ? StatusCode::kResourceExhausted : StatusCode::kInternal;
}

// Whether the process has ended. It stays a zombie, so that nobody gets the name of its group.
bool HasEnded(pid_t pid) {
  siginfo_t end{};
  return waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         end.si_pid == pid;
}

bool IsFreePort(int port) {
  const int fd = TakeLoopbackPort(port);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// In the child, between fork and exec: only what is safe there. `log`: for what it writes; -1: as before.
[[noreturn]] void Become(char** words, char** environment, pid_t parent, int report, int log) {
  setpgid(0, 0);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    environ = environment;
    execvp(words[0], words);
  }
  const int why = errno;
  const ssize_t ignored = write(report, &why, sizeof why);
  static_cast<void>(ignored);
  _exit(127);
}

}  // namespace

WorkerProcesses::WorkerProcesses(std::vector<WorkerCommand> commands) {
  for (WorkerCommand& command : commands) workers_.emplace_back().command = std::move(command);
}

WorkerProcesses::~WorkerProcesses() { Stop(std::chrono::seconds(1)); }

Status WorkerProcesses::Start(Worker& worker) {
  std::vector<char*> words;
  for (std::string& word : worker.command.words) words.push_back(word.data());
  words.push_back(nullptr);
  std::vector<std::string> more;
  std::vector<char*> environment;
  for (const auto& [name, value] : worker.command.environment) {
    more.push_back(name + "=" + value);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool replaced =
        std::any_of(worker.command.environment.begin(), worker.command.environment.end(),
                    [&](const auto& one) { return text.starts_with(one.first + "="); });
    if (!replaced) environment.push_back(*entry);
  }
  for (std::string& entry : more) environment.push_back(entry.data());
  environment.push_back(nullptr);

  int log = -1;
  if (!worker.command.log_mark.empty()) {
    PORTICO_ASSIGN_OR_RETURN(log, logs_.Open(worker.command.log_mark));
  }
  int report[2];  // closed by a successful exec
  if (pipe2(report, O_CLOEXEC) != 0) {
    const int why = errno;
    if (log >= 0) close(log);
    return Error(CodeOfStart(why), fmt::format("pipe: {}", std::strerror(why)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(words.data(), environment.data(), parent, report[1], log);
  int why = pid < 0 ? errno : 0;
  close(report[1]);
  if (log >= 0) close(log);
  if (pid > 0 && read(report[0], &why, sizeof why) <= 0) why = 0;
  close(report[0]);
  if (why != 0) {
    if (pid > 0) waitpid(pid, nullptr, 0);
    return Error(CodeOfStart(why),
                 fmt::format("cannot run {}: {}", worker.command.words[0], std::strerror(why)));
  }
  worker.pid = pid;
  worker.started = Clock::now();
  LogInfo("{} started: process {}", worker.command.name, pid);
  return OkStatus();
}

Status WorkerProcesses::StartOrPutOff(Worker& worker) {
  const Status started = Start(worker);
  if (started.ok()) {
    worker.put_off = 0;
    return started;
  }
  const bool lacks = started.code() == StatusCode::kResourceExhausted;
  // An upgrade replaces programs; one that stays away is given up.
  if (!worker.ended_before || (!lacks && ++worker.deaths >= kMaxDeaths)) {
    return Error(started.code(), fmt::format("{}: {}", worker.command.name, MessageOf(started)));
  }
  const Duration pause = PauseAfter(++worker.put_off);
  worker.due = Clock::now() + pause;
  LogWarning("{} does not start: {}; it is tried again in {:.1f} s", worker.command.name,
             MessageOf(started), Seconds(pause));
  return OkStatus();
}

Status WorkerProcesses::NoteDeath(Worker& worker, int status) {
  const TimePoint now = Clock::now();
  worker.pid = -1;  // another process may get it
  const bool first = !std::exchange(worker.ended_before, true);
  // Later it says nothing of the command line.
  if (first && now - worker.started < kSteady && WIFEXITED(status) &&
      WEXITSTATUS(status) == worker.command.usage_error) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{} refuses its command line ({}); its message is above",
                             worker.command.name, HowItEnded(status)));
  }
  // A restart mends no missing package, for example.
  worker.failed_at_once |=
      first && WIFEXITED(status) && WEXITSTATUS(status) != 0 && now - worker.started < kAtOnce;
  if (first && std::all_of(workers_.begin(), workers_.end(),
                           [](const Worker& one) { return one.failed_at_once; })) {
    return Error(StatusCode::kInternal,
                 fmt::format("{} has ended ({}) at its first start{}; what it wrote last is above",
                             worker.command.name, HowItEnded(status),
                             workers_.size() == 1 ? "" : ", as have all others"));
  }
  if (now - worker.started >= kSteady) worker.deaths = 0;
  ++worker.deaths;
  if (worker.deaths >= kMaxDeaths) {
    return Error(StatusCode::kInternal,
                 fmt::format("{} has ended {} times ({}): giving up", worker.command.name,
                             worker.deaths, HowItEnded(status)));
  }
  const Duration pause = PauseAfter(worker.deaths);
  worker.due = now + pause;
  LogWarning("{} has ended ({}); it starts again in {:.1f} s", worker.command.name,
             HowItEnded(status), Seconds(pause));
  return OkStatus();
}

Status WorkerProcesses::Tick(absl::FunctionRef<void(const std::string& url)> on_end) {
  for (Worker& worker : workers_) {
    int status = 0;
    if (worker.pid > 0 && HasEnded(worker.pid)) {
      kill(-worker.pid, SIGKILL);  // processes that it has left behind hold its devices and port
      waitpid(worker.pid, &status, 0);
      on_end(worker.command.url);
      if (!worker.command.log_mark.empty()) {
        logs_.WaitForEnd(worker.command.log_mark, kLastWords);  // why it has ended
      }
      PORTICO_RETURN_IF_ERROR(NoteDeath(worker, status));
    }
    if (worker.pid < 0 && Clock::now() >= worker.due)
      PORTICO_RETURN_IF_ERROR(StartOrPutOff(worker));
  }
  return OkStatus();
}

std::optional<bool> WorkerProcesses::Runs(std::string_view url) const {
  for (const Worker& worker : workers_) {
    if (worker.command.url == url) return worker.pid > 0;
  }
  return std::nullopt;
}

void WorkerProcesses::Stop(Duration patience) {
  const auto running = [this] {
    bool any = false;
    for (Worker& worker : workers_) {
      if (worker.pid <= 0) continue;
      while (waitpid(-worker.pid, nullptr, WNOHANG) > 0) {
      }
      if (kill(-worker.pid, 0) != 0 && errno == ESRCH) worker.pid = -1;
      any = any || worker.pid > 0;
    }
    return any;
  };
  for (const Worker& worker : workers_) {
    if (worker.pid > 0) kill(-worker.pid, SIGTERM);
  }
  const TimePoint deadline = Clock::now() + patience;
  while (running() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (Worker& worker : workers_) {
    if (worker.pid <= 0) continue;
    kill(-worker.pid, SIGKILL);
    waitpid(worker.pid, nullptr, 0);
    worker.pid = -1;
  }
}

int TakeLoopbackPort(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

StatusOr<int> FreePorts(int from, int count) {
  int free = 0;  // up to this port
  for (int port = from; port < 65536; ++port) {
    free = IsFreePort(port) ? free + 1 : 0;
    if (free == count) return port - count + 1;
  }
  return Error(StatusCode::kUnavailable,
               count == 1 ? fmt::format("no port is free from {} on", from)
                          : fmt::format("no {} ports in a row are free from {} on", count, from));
}

}  // namespace portico
