// Starting a stage process.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "pipeline/blob.h"

namespace portico::pipeline {

// The descriptor of the socket in the process.
inline constexpr int kStageSocket = 3;

struct SpawnOptions {
  std::vector<std::string> words;                                // program and arguments
  std::vector<std::pair<std::string, std::string>> environment;  // where this process has none
};

struct Spawned {
  pid_t pid = -1;
  Fd socket;  // this end
  Fd exit;    // readable once the process has ended; invalid where the kernel has no such thing
};

// Thread safe: the process is spawned, not forked, and is a process group of its own.
StatusOr<Spawned> SpawnStage(const SpawnOptions& options);

// Ends the whole group and waits for the process; how it ended: "signal 9".
std::string EndProcess(pid_t pid);

}  // namespace portico::pipeline
