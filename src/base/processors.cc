#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <thread>

namespace portico {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int Ratio(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::ceil(quota / period - 1e-9)));
}

int Fewer(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// cpu.max: "QUOTA PERIOD" or "max PERIOD", in microseconds.
int QuotaOfV2(const fs::path& group) {
  std::istringstream text(ReadAll(group / "cpu.max"));
  double quota = 0, period = 0;
  return text >> quota >> period ? Ratio(quota, period) : 0;
}

int QuotaOfV1(const fs::path& group) {
  std::istringstream quota_text(ReadAll(group / "cpu.cfs_quota_us"));
  std::istringstream period_text(ReadAll(group / "cpu.cfs_period_us"));
  double quota = 0, period = 0;
  return quota_text >> quota && period_text >> period ? Ratio(quota, period) : 0;
}

// Of the group and of those around it: each may allow less.
template <typename Quota>
int LeastQuota(const fs::path& root, const std::string& group, Quota quota_of) {
  int least = quota_of(root);
  fs::path at = root;
  for (const fs::path& part : fs::path(group).relative_path()) {
    at /= part;
    least = Fewer(least, quota_of(at));
  }
  return least;
}

bool Names(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == wanted) return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

}  // namespace

int QuotaOf(const std::string& root, const std::string& own) {
  std::istringstream lines(own);
  int least = 0;
  for (std::string line; std::getline(lines, line);) {
    // "ID:CONTROLLERS:/GROUP"; version 2 has no controllers there.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = Fewer(least, LeastQuota(root, group, QuotaOfV2));
    } else if (Names(controllers, "cpu")) {
      for (const char* mount : {"cpu", "cpu,cpuacct"}) {
        least = Fewer(least, LeastQuota(fs::path(root) / mount, group, QuotaOfV1));
      }
    }
  }
  return least;
}

int UsableProcessors() {
  static const int usable = [] {
    int processors = static_cast<int>(std::thread::hardware_concurrency());
    cpu_set_t mask;
    CPU_ZERO(&mask);
    // Fails where there are more processors than the mask has bits; then all may be used.
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) processors = CPU_COUNT(&mask);
    const int quota = QuotaOf("/sys/fs/cgroup", ReadAll("/proc/self/cgroup"));
    return std::max(1, Fewer(std::max(processors, 1), quota));
  }();
  return usable;
}

}  // namespace portico
