// Where Portico keeps what it can make again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace portico {

// $PORTICO_CACHE_DIR, else $XDG_CACHE_HOME/portico, else ~/.cache/portico; a relative path is ignored, as the XDG
// specification wants it. The folder need not exist yet. FAILED_PRECONDITION where none of these is set.
StatusOr<std::string> CacheFolder();

struct CachedFile {
  std::filesystem::file_time_type used;  // last written
  uint64_t size = 0;
  std::filesystem::path path;
};

// The files of a folder; none where it cannot be read. Files that vanish meanwhile are left out.
std::vector<CachedFile> CachedFiles(const std::string& folder);

// Hands the files that were used least recently to `remove`, until the others have at most `max_bytes` together. What it
// returns false for has stayed.
void TrimCache(std::vector<CachedFile> files, uint64_t max_bytes,
               const std::function<bool(const std::filesystem::path&)>& remove);

}  // namespace portico
