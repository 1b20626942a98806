// The process that starts SGLang's schedulers and stays as their parent (python/portico/sglang_launch.py), as seen from
// here: its events, its log, its end. The process ends with this object, and with this program however that ends: its
// standard input is a pipe that only this program holds.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/sglang/launch/traceback_watch.h"
#include "text/json.h"

namespace portico::sglang {

struct LaunchOptions {
  std::string python;  // the interpreter that has SGLang, found by PATH
  std::string script;
  std::string folder;                     // for the sockets
  std::vector<std::string> flags;         // SGLang's
  std::vector<std::string> environment;   // NAME=VALUE beside this process's
  int media_helpers = 1;                  // processes that read media
  std::string reasoning_parser = "auto";  // or a name, or none
  std::string transport = "ipc";          // ipc, tcp
  // Of SGLang's front end in the flags, or in a file that they name: what Portico has taken over.
  std::vector<std::string> front_end_has;
};

class Launcher {
 public:
  using Progress = std::function<void(std::string_view stage)>;

  // NOT_FOUND, UNAVAILABLE: it cannot be started.
  static StatusOr<std::unique_ptr<Launcher>> Start(const LaunchOptions& options);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // The next event other than progress, which goes to `progress`. Blocks; UNAVAILABLE with SGLang's reason where it has
  // failed or ended, UNIMPLEMENTED where it speaks another wire than Portico.
  StatusOr<Json> Await(std::string_view event, const Progress& progress);
  // A line on its standard input.
  Status Tell(std::string line);

  // Readable once the process has ended; -1 where the kernel has no such thing.
  int exit_descriptor() const { return pid_fd_; }
  // Why it has ended, as far as it has said so or its log shows. Call once, after the end.
  std::string LastWords();

 private:
  Launcher() = default;
  // The next line of the events; false at their end.
  bool ReadLine(std::string* line);
  void CopyLog();
  void LogLine(const std::string& line);
  // The last exception that the log shows, waiting until the log has ended; empty: none within the last minute.
  std::string LastException();
  // What the launcher says, with that exception where it says something else.
  std::string WithException(std::string said);

  pid_t pid_ = -1;
  int pid_fd_ = -1;
  int input_ = -1;   // its standard input
  int events_ = -1;  // its file descriptor 3
  int log_ = -1;     // its output
  std::string unread_;
  Mutex log_mutex_;
  CondVar log_changed_;
  bool log_ended_ ABSL_GUARDED_BY(log_mutex_) = false;
  TracebackWatch tracebacks_ ABSL_GUARDED_BY(log_mutex_);
  TimePoint exception_time_ ABSL_GUARDED_BY(log_mutex_);
  std::thread log_thread_;
};

// A descriptor that is readable once that process has ended, or -1.
int OpenProcess(pid_t pid);

}  // namespace portico::sglang
