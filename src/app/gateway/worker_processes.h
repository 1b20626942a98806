// The workers that `portico launch` starts: one process group each, restarted with growing pauses
// when they die, all ended when the launcher ends (by the kernel, if the launcher is killed). What a
// dead worker leaves of its group is killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "app/gateway/worker_logs.h"
#include "base/clock.h"
#include "base/status.h"

namespace portico {

struct WorkerCommand {
  std::vector<std::string> words;                                // the program and its arguments
  std::vector<std::pair<std::string, std::string>> environment;  // beyond the launcher's
  std::string name;  // for the log: "worker 0 (w1) on port 31000"
  std::string url;   // where it serves, as the gateway calls it
  std::string
      log_mark;  // in front of each line that it writes; empty: it writes where the launcher does
  // It ends with this status, after a message, where its command line is wrong; -1: not known.
  int usage_error = -1;
};

// On one thread, the one that has made it, which must live as long as the workers.
class WorkerProcesses {
 public:
  explicit WorkerProcesses(std::vector<WorkerCommand> commands);
  ~WorkerProcesses();  // Stop() with a second's patience
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // Starts what does not run and is due: all of them at first. Fails if a program cannot be run, if
  // a worker has died kMaxDeaths times in a row without having lived for kSteady, if the first process of every worker has
  // ended with an error of its own within kAtOnce (no worker can have served much), or, with
  // INVALID_ARGUMENT, if its first end says that its command line is wrong. Where descriptors,
  // processes or memory are lacking, a restart is tried again later, as often as it takes: the other workers serve on.
  // `on_end` gets the URL of each whose process has ended.
  Status Tick(absl::FunctionRef<void(const std::string& url)> on_end);
  // Whether the worker of that URL runs, as the last Tick() has seen it; none: it is not one of these.
  std::optional<bool> Runs(std::string_view url) const;
  // SIGTERM to all, SIGKILL after `patience`.
  void Stop(Duration patience);

  static constexpr int kMaxDeaths = 8;
  static constexpr Duration kAtOnce = std::chrono::seconds(5);
  static constexpr Duration kSteady = std::chrono::seconds(60);

 private:
  struct Worker {
    WorkerCommand command;
    pid_t pid = -1;   // -1: does not run
    int deaths = 0;   // in a row
    int put_off = 0;  // starts in a row that had no resources
    bool ended_before = false;
    bool failed_at_once = false;  // its first process has, within kAtOnce
    TimePoint started{};
    TimePoint due{};
  };

  // RESOURCE_EXHAUSTED: the machine, or a limit, has no room for another process.
  Status Start(Worker& worker);
  // The same, but a restart for which there is no room is put off.
  Status StartOrPutOff(Worker& worker);
  Status NoteDeath(Worker& worker, int status);

  WorkerLogs logs_;
  std::vector<Worker> workers_;
};

// A socket that keeps the port of the loopback address from others, until the caller closes it; -1: it is taken.
int TakeLoopbackPort(int port);

// The first of `count` free ports of this machine in a row, at or after `from`.
StatusOr<int> FreePorts(int from, int count);

}  // namespace portico
