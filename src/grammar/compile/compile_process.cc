#include "grammar/compile/compile_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "grammar/compile/compile_child.h"
#include "grammar/compile/socket_io.h"

namespace portico::grammar {
namespace {

using Clock = std::chrono::steady_clock;

// Closes a file descriptor.
class Closer {
 public:
  explicit Closer(int fd) : fd_(fd) {}
  ~Closer() {
    if (fd_ >= 0) close(fd_);
  }
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
  int get() const { return fd_; }
  void Close() { close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

constexpr int kControl = 3;                    // the file descriptor in the process
constexpr std::chrono::seconds kPatience{10};  // a process that does not answer for so long is none

Status Gone() { return Error(StatusCode::kUnavailable, "the grammar compiler is gone"); }

// False: not all came in time, or more than `most` bytes.
bool ReadUntil(int fd, Clock::time_point end, size_t most, std::string* bytes) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd wanted{fd, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[64 << 10];
    const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    bytes->append(buffer, static_cast<size_t>(got));
    if (bytes->size() > most) return false;
  }
}

}  // namespace

StatusOr<std::unique_ptr<CompileProcess>> CompileProcess::StartProgram(const std::string& argument,
                                                                       const std::string& program) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(StatusCode::kInternal, fmt::format("socketpair: {}", std::strerror(errno)));
  }
  const Closer other(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kControl);
  std::string name = "portico-grammar";
  std::string copy = argument;
  char* const arguments[] = {name.data(), copy.data(), nullptr};
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    close(ends[0]);
    return Error(StatusCode::kUnavailable,
                 fmt::format("the grammar compiler cannot be started: {}", std::strerror(failed)));
  }
  return std::unique_ptr<CompileProcess>(new CompileProcess(ends[0], pid));
}

void CompileProcess::ServeAsProgram() {
  close_range(kControl + 1, ~0U, 0);  // what the server had open without O_CLOEXEC
  ServeCompilations(kControl);
}

StatusOr<std::unique_ptr<CompileProcess>> CompileProcess::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(StatusCode::kInternal, fmt::format("socketpair: {}", std::strerror(errno)));
  }
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return Error(StatusCode::kInternal, fmt::format("fork: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    // Nothing of the server's stays open in it.
    dup2(ends[1], kControl);
    close_range(kControl + 1, ~0U, 0);
    ServeCompilations(kControl);
  }
  close(ends[1]);
  return std::unique_ptr<CompileProcess>(new CompileProcess(ends[0], pid));
}

CompileProcess::~CompileProcess() {
  close(control_);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void CompileProcess::End() const { kill(pid_, SIGKILL); }

Status CompileProcess::Send(char what, int32_t vocabulary, int fd) const {
  Message message;
  message.what = what;
  message.vocabulary = vocabulary;
  return SendFd(control_, &message, sizeof message, fd) ? OkStatus() : Gone();
}

bool CompileProcess::alive() const {
  pollfd control{control_, 0, 0};
  return poll(&control, 1, 0) <= 0;
}

bool CompileProcess::Answers() const {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return true;
  Closer mine(ends[0]);
  Closer other(ends[1]);
  if (!Send('P', 0, other.get()).ok()) return false;
  other.Close();
  std::string answer;
  return ReadUntil(mine.get(), Clock::now() + kPatience, 1, &answer) && !answer.empty();
}

Status CompileProcess::AddVocabulary(int32_t name, std::string_view serialized) const {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Gone();
  Closer mine(ends[0]);
  Closer other(ends[1]);
  PORTICO_RETURN_IF_ERROR(Send('V', name, other.get()));
  other.Close();
  if (!WriteAll(mine.get(), serialized)) return Gone();
  shutdown(mine.get(), SHUT_WR);
  std::string answer;
  if (!ReadUntil(mine.get(), Clock::now() + std::chrono::seconds(60), 1 << 20, &answer) ||
      answer.empty()) {
    return Gone();
  }
  if (answer[0] != static_cast<char>(Answer::kGood)) {
    return Error(StatusCode::kInternal, "the vocabulary suits no grammar: " + answer.substr(1));
  }
  return OkStatus();
}

StatusOr<std::string> CompileProcess::Compile(int32_t vocabulary, const GrammarText& text,
                                              const CompileLimits& limits) const {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Gone();
  Closer mine(ends[0]);
  Closer other(ends[1]);
  PORTICO_RETURN_IF_ERROR(Send('C', vocabulary, other.get()));
  other.Close();
  CompileHead head;
  head.time_ms = limits.time.count();
  head.memory_bytes = limits.memory_bytes;
  head.result_bytes = limits.result_bytes;
  head.text = limits.text;
  head.kind = static_cast<uint8_t>(text.kind);
  head.closed_objects = text.closed_objects;
  head.compact = text.compact;
  const auto end = Clock::now() + limits.time + std::chrono::milliseconds(900);
  if (!WriteAll(mine.get(), {reinterpret_cast<const char*>(&head), sizeof head}) ||
      !WriteAll(mine.get(), text.text)) {
    return Gone();
  }
  shutdown(mine.get(), SHUT_WR);
  std::string answer;
  const auto started = Clock::now();
  const bool whole =
      ReadUntil(mine.get(), end, static_cast<size_t>(limits.result_bytes) + 1, &answer);
  if (!whole || answer.empty()) {
    // One that is killed closes its files in any order; that it can no longer answer is sure.
    if (!Answers()) return Gone();
    if (Clock::now() - started < limits.time * 9 / 10) {
      return Error(StatusCode::kInvalidArgument, "the grammar is too complex: compiling it failed");
    }
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("the grammar is too complex: compiling it takes longer than {} ms",
                             limits.time.count()));
  }
  const auto code = static_cast<Answer>(answer[0]);
  answer.erase(0, 1);
  if (code == Answer::kGood) return answer;
  if (code == Answer::kRefused) return Error(StatusCode::kInvalidArgument, std::move(answer));
  return Error(StatusCode::kInvalidArgument,
               "the grammar is too complex: it needs too much memory");
}

}  // namespace portico::grammar
