#include "app/command_tools.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace portico {

int Fail(std::string_view command, std::string_view message, int status) {
  std::fprintf(stderr, "portico %.*s: %.*s\n", static_cast<int>(command.size()), command.data(),
               static_cast<int>(message.size()), message.data());
  return status;
}

int FailToRead(std::string_view command, const Status& status) {
  return Fail(command, MessageOf(status),
              status.code() == StatusCode::kNotFound ? kUsageError : kFailed);
}

std::string AddressOf(const std::string& host, int port) {
  const bool bare = host.find(':') != std::string::npos && !host.starts_with('[');
  return bare ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t BlockSignals(std::initializer_list<int> more) {
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  for (const int signal : more) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void BlockHangup(sigset_t* signals) {
  struct sigaction hangup{};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) return;
  sigaddset(signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, signals, nullptr);
}

SecondSignal::SecondSignal(const sigset_t& signals, bool hangup_ends)
    : thread_([this, signals, hangup_ends] {
        // A SIGUSR1 from elsewhere must not end the watch.
        while (!over_) {
          int signal = 0;
          sigwait(&signals, &signal);
          if (signal != SIGUSR1 && (signal != SIGHUP || hangup_ends)) _exit(kInterrupted);
        }
      }) {}

SecondSignal::~SecondSignal() {
  over_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

}  // namespace portico
