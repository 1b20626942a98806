#include "base/cache_folder.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/folder_entries.h"

namespace portico {
namespace {

std::string AbsoluteFrom(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? std::string(value) : std::string();
}

}  // namespace

StatusOr<std::string> CacheFolder() {
  if (std::string own = AbsoluteFrom("PORTICO_CACHE_DIR"); !own.empty()) return own;
  if (std::string xdg = AbsoluteFrom("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/portico";
  if (std::string home = AbsoluteFrom("HOME"); !home.empty()) return home + "/.cache/portico";
  return Error(StatusCode::kFailedPrecondition,
               "a cache folder is needed: set PORTICO_CACHE_DIR, XDG_CACHE_HOME or HOME");
}

std::vector<CachedFile> CachedFiles(const std::string& folder) {
  std::vector<CachedFile> files;
  std::error_code error;
  for (const auto& file : FolderEntries(folder, &error)) {
    std::error_code gone;
    CachedFile found{file.last_write_time(gone), file.file_size(gone), file.path()};
    if (!gone) files.push_back(std::move(found));
  }
  return files;
}

void TrimCache(std::vector<CachedFile> files, uint64_t max_bytes,
               const std::function<bool(const std::filesystem::path&)>& remove) {
  std::sort(files.begin(), files.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.used < b.used; });
  uint64_t total = 0;
  for (const CachedFile& file : files) total += file.size;
  for (const CachedFile& file : files) {
    if (total <= max_bytes) break;
    if (remove(file.path)) total -= file.size;
  }
}

}  // namespace portico
