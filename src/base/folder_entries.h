// The entries of a folder, without exceptions: a range-based for over std::filesystem's iterator throws where one cannot
// be read.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace portico {

// In no order. `*error` says why they are not all.
inline std::vector<std::filesystem::directory_entry> FolderEntries(
    const std::filesystem::path& folder, std::error_code* error) {
  std::vector<std::filesystem::directory_entry> entries;
  std::filesystem::directory_iterator at(folder, *error);
  for (const std::filesystem::directory_iterator end; !*error && at != end; at.increment(*error)) {
    entries.push_back(*at);
  }
  return entries;
}

}  // namespace portico
