// The file of --discovery-file: workers follow it as it changes.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/clock.h"
#include "router/gateway.h"

namespace portico {

// One thread.
class WorkerFile {
 public:
  WorkerFile(std::string path, Duration interval) : path_(std::move(path)), interval_(interval) {}

  // Looks whether the file has changed and brings the workers in line with it. One that is wrong, empty or
  // missing changes nothing and is told once.
  void Tick(router::Gateway& gateway);

 private:
  void Read(router::Gateway& gateway);

  const std::string path_;
  const Duration interval_;
  TimePoint due_{};
  std::string seen_;   // time, size and number of the file that was read
  std::string fault_;  // what was told
};

}  // namespace portico
