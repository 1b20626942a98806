#include "engine/llama/kv/kv_size.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "fmt/format.h"

namespace portico::llama {
namespace {

// A cgroup v2 file that holds one number, or "max".
int64_t ReadNumber(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : std::numeric_limits<int64_t>::max();
}

int64_t MachineFreeBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  for (std::string unit; file >> key >> kib; std::getline(file, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return int64_t{4} << 30;  // no /proc: assume little
}

}  // namespace

int64_t FreeMemoryBytes(int64_t mapped_bytes) {
  const int64_t machine = std::max<int64_t>(MachineFreeBytes() - mapped_bytes, 0);
  const int64_t limit = ReadNumber("/sys/fs/cgroup/memory.max");
  if (limit == std::numeric_limits<int64_t>::max()) return machine;
  const int64_t used = ReadNumber("/sys/fs/cgroup/memory.current");
  return std::min(machine, std::max<int64_t>(limit - std::min(used, limit), 0));
}

std::string HumanBytes(int64_t bytes) {
  constexpr int64_t kMib = int64_t{1} << 20;
  if (bytes >= 1024 * kMib)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * kMib));
  if (bytes >= 10 * kMib) return fmt::format("{} MiB", bytes / kMib);
  return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024.0);
}

StatusOr<KvSize> ChooseKvSize(const KvSizeRequest& r) {
  const int64_t bytes_per_cell = std::max<int64_t>(r.bytes_per_cell, 1);
  KvSize size{r.max_total_tokens, "as asked for"};
  if (r.max_total_tokens > 0 && r.max_total_tokens < kLeastCells) {
    return InvalidArgument(
        "max_total_tokens",
        fmt::format("a KV cache of {} tokens is too small for any request, which takes {} or more; "
                    "choose a larger --max-total-tokens",
                    r.max_total_tokens, kLeastCells));
  }
  if (r.max_total_tokens <= 0) {
    const int64_t quarter = r.free_bytes / 4 / bytes_per_cell;
    size = {r.context_length * r.max_running, "a whole context for each running request"};
    if (size.cells > kMostDefaultCells) size = {kMostDefaultCells, "the default's upper bound"};
    if (size.cells > quarter) size = {quarter / 256 * 256, "a quarter of the free memory"};
    if (size.cells < r.context_length) size = {r.context_length, "one whole context"};
  }
  if (size.cells > r.free_bytes / bytes_per_cell) {
    return Error(
        StatusCode::kResourceExhausted,
        fmt::format(
            "a KV cache of {} tokens takes {}, but only {} of memory are free; choose a smaller "
            "--max-total-tokens or --context-length",
            size.cells, HumanBytes(size.cells * bytes_per_cell), HumanBytes(r.free_bytes)));
  }
  return size;
}

}  // namespace portico::llama
