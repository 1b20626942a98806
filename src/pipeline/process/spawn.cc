#include "pipeline/process/spawn.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/child_process.h"
#include "pipeline/remote/greeting.h"

namespace portico::pipeline {

StatusOr<Spawned> SpawnStage(const SpawnOptions& options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(StatusCode::kUnavailable, fmt::format("socketpair: {}", std::strerror(errno)));
  }
  Spawned spawned;
  spawned.socket = Fd(ends[0]);
  const Fd theirs(ends[1]);

  ChildProgram program{.words = options.words,
                       .descriptors = {{theirs.get(), kStageSocket}},
                       .last = kStageSocket,
                       .no_input = true,
                       .withheld = {kTokenVariable}};  // stages need not know it
  for (const auto& [name, value] : options.environment) {
    if (std::getenv(name.c_str()) == nullptr) program.more_names.push_back(name + "=" + value);
  }
  const int failed = StartChild(std::move(program), &spawned.pid);
  if (failed != 0) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("{} cannot be started: {}", options.words[0], std::strerror(failed)));
  }
  spawned.exit = Fd(static_cast<int>(syscall(SYS_pidfd_open, spawned.pid, 0)));
  return spawned;
}

std::string EndProcess(pid_t pid) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("status {}", WEXITSTATUS(status));
}

}  // namespace portico::pipeline
