// What commands share: their exit statuses, and what long-running ones do about signals and files.
#pragma once

#include <signal.h>

#include <atomic>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>

#include "base/status.h"

namespace portico {

// The exit statuses beside 0; `portico --help` lists them.
// What fails at run time: a file or server that is not as it should be, a port in use. So are the file of a `check`, and a
// pipeline's with the dotted flags that change it; what stands for flags (--config, an environment variable) is not.
inline constexpr int kFailed = 1;
// A wrong command line: an unknown flag, a wrong value, a missing argument, a model or a certificate that is not there.
inline constexpr int kUsageError = 2;
// A second Ctrl-C or SIGTERM.
inline constexpr int kInterrupted = 130;

// Says "portico COMMAND: MESSAGE" on standard error; gives the status.
int Fail(std::string_view command, std::string_view message, int status = kFailed);
// The same for a file or folder that the command line names: one that is not there (NOT_FOUND) is a wrong value.
int FailToRead(std::string_view command, const Status& status);

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

// While requests in flight finish and the process ends: the next SIGINT or SIGTERM ends the process with kInterrupted, and so does SIGHUP where
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
