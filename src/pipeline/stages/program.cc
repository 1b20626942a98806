#include "pipeline/stages/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_split.h"
#include "base/child_process.h"
#include "pipeline/blob.h"

namespace portico::pipeline {
namespace {

constexpr int kTickMs = 50;

struct Pipe {
  Fd read;
  Fd write;
};

bool Open(Pipe* pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe->read = Fd(ends[0]);
  pipe->write = Fd(ends[1]);
  return true;
}

int Spawn(const std::vector<std::string>& words, const Pipe& input, const Pipe& output,
          pid_t* pid) {
  return StartChild(
      {.words = words,
       .descriptors = {{input.read.get(), STDIN_FILENO}, {output.write.get(), STDOUT_FILENO}}},
      pid);
}

// False: the program takes no more, which is its own affair.
bool GiveInput(int fd, std::string_view* input) {
  // SIGPIPE would end this process: it is blocked for this write, and taken back.
  sigset_t pipe_signal;
  sigset_t before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = write(fd, input->data(), input->size());
  const int why = errno;
  if (written < 0 && why == EPIPE && sigismember(&before, SIGPIPE) == 0) {
    const timespec now{};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (written < 0) return why == EINTR || why == EAGAIN;
  input->remove_prefix(static_cast<size_t>(written));
  return !input->empty();
}

// True: its output has ended; false: it was stopped.
bool Attend(Pipe* input, const Pipe& output, std::string_view text, const ProgramEvents& events) {
  fcntl(input->write.get(), F_SETFL, O_NONBLOCK);
  if (text.empty()) input->write.Close();
  char block[16 << 10];
  while (!events.stopped()) {
    pollfd waits[2] = {{output.read.get(), POLLIN, 0}, {input->write.get(), POLLOUT, 0}};
    if (poll(waits, 2, kTickMs) <= 0) continue;
    if (input->write.valid() && waits[1].revents != 0 && !GiveInput(input->write.get(), &text)) {
      input->write.Close();
    }
    if (waits[0].revents == 0) continue;
    const ssize_t size = read(output.read.get(), block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    if (!events.on_output({block, static_cast<size_t>(size)})) return false;
  }
  return false;
}

}  // namespace

Status FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0) return OkStatus();
  } else {
    const char* path = std::getenv("PATH");
    for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
      if (access(fmt::format("{}/{}", std::string(folder), name).c_str(), X_OK) == 0)
        return OkStatus();
    }
  }
  return Error(StatusCode::kUnavailable, fmt::format("the program `{}` is not installed", name));
}

Status RunProgram(const std::vector<std::string>& words, std::string_view input,
                  const ProgramEvents& events) {
  Pipe to;
  Pipe from;
  pid_t pid = -1;
  if (!Open(&to) || !Open(&from)) {
    return Error(StatusCode::kUnavailable, fmt::format("no pipe: {}", std::strerror(errno)));
  }
  if (const int failed = Spawn(words, to, from, &pid); failed != 0) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("`{}` cannot be started: {}", words[0], std::strerror(failed)));
  }
  to.read.Close();
  from.write.Close();
  const bool whole = Attend(&to, from, input, events);
  if (!whole) kill(-pid, SIGKILL);
  // Its output has ended, so it is about to end; one that stays on is ended.
  int status = 0;
  for (int tries = 0; waitpid(pid, &status, WNOHANG) == 0; ++tries) {
    if (tries == 200 || events.stopped()) kill(-pid, SIGKILL);
    usleep(tries < 20 ? 500 : 10'000);
  }
  kill(-pid, SIGKILL);  // what it has left behind
  if (!whole || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return OkStatus();
  return Error(StatusCode::kInternal,
               WIFSIGNALED(status)
                   ? fmt::format("`{}` was ended by signal {}", words[0], WTERMSIG(status))
                   : fmt::format("`{}` ended with status {}", words[0], WEXITSTATUS(status)));
}

}  // namespace portico::pipeline
