#include "app/gateway/worker_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <vector>

#include "app/options/route_options.h"
#include "app/read_file.h"
#include "base/counted.h"
#include "base/log.h"

namespace portico {

void WorkerFile::Tick(router::Gateway& gateway) {
  struct stat is{};
  const bool there = stat(path_.c_str(), &is) == 0;
  const std::string now = there ? fmt::format("{}.{} {} {}", is.st_mtim.tv_sec, is.st_mtim.tv_nsec,
                                              is.st_size, is.st_ino)
                                : "";
  if (now == seen_ && Clock::now() < due_) return;
  seen_ = now;
  due_ = Clock::now() + interval_;
  Read(gateway);
}

void WorkerFile::Read(router::Gateway& gateway) {
  std::string fault;
  const auto text = ReadFile(path_);
  const StatusOr<std::vector<router::WorkerSpec>> workers =
      text.ok() ? ReadWorkerList(*text, path_) : text.status();
  if (workers.ok()) {
    const auto [added, removed] = gateway.ReplaceWorkers(*workers, router::Source::kDiscovery);
    if (added + removed > 0) {
      LogInfo("{}: {} added, {} removed", path_, Counted(added, "worker"), removed);
    }
  } else {
    fault = std::string(MessageOf(workers.status()));
  }
  if (!fault.empty() && fault != fault_) LogError("{}; the workers stay as they are", fault);
  fault_ = fault;
}

}  // namespace portico
