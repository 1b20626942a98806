// What long-running commands share.
#pragma once

#include <signal.h>

#include <atomic>
#include <initializer_list>
#include <string>
#include <thread>

namespace portico {

// The exit status after a wrong command line. 1 is for what fails later, and 130 for a second Ctrl-C.
inline constexpr int kUsageError = 2;

// "127.0.0.1:30000", "[::1]:30000": as URLs have it.
std::string AddressOf(const std::string& host, int port);

// Connections are file descriptors: takes as many as the system gives.
void RaiseFileLimit();

// Blocks SIGINT, SIGTERM and `more` here and in every thread made later: only who waits for them by
// sigtimedwait gets them. A file that has reached its size limit fails to be written from now on, which is reported where
// it is; it ended the process by SIGXFSZ.
sigset_t BlockSignals(std::initializer_list<int> more);
// SIGHUP too, for programs that it ends: the terminal has gone. Not where it is ignored, as under nohup.
void BlockHangup(sigset_t* signals);

// While requests in flight finish: the next SIGINT or SIGTERM ends the process with status 130, and so does SIGHUP where
// `hangup_ends`. `signals` are blocked, SIGUSR1 among them.
class SecondSignal {
 public:
  SecondSignal(const sigset_t& signals, bool hangup_ends);
  ~SecondSignal();
  SecondSignal(const SecondSignal&) = delete;
  SecondSignal& operator=(const SecondSignal&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace portico
