#include "base/own_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/folder_entries.h"

namespace portico {
namespace {

// A folder without it is left alone: it is not of these, or its process has not gone further.
constexpr const char* kLockName = "/in-use";

// Folders in /tmp may be anybody's, and what has such a name may be a link.
bool IsOwnFolder(const std::string& path) {
  struct stat about{};
  return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

void RemoveLeft(const std::string& prefix) {
  std::error_code ignored;
  const std::string name = std::filesystem::path(prefix).filename().string();
  for (const auto& entry : FolderEntries(std::filesystem::path(prefix).parent_path(), &ignored)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(name) || !IsOwnFolder(path)) continue;
    const int lock = open((path + kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) continue;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(path, ignored);
    close(lock);
  }
}

// The file is there under its name once it is locked, where it can be. -1, with errno.
int LockFolder(const std::string& path) {
  const std::string name = path + kLockName;
  const std::string before = name + ".new";
  const int lock = open(before.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock < 0) return -1;
  // On a file system without locks it keeps the name that nobody looks for.
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) return lock;
  if (std::rename(before.c_str(), name.c_str()) == 0) return lock;
  const int why = errno;
  close(lock);
  errno = why;
  return -1;
}

}  // namespace

StatusOr<OwnFolder> OwnFolder::Make(const std::string& prefix) {
  RemoveLeft(prefix);
  OwnFolder folder;
  std::string path = prefix + "XXXXXX";
  if (mkdtemp(path.data()) != nullptr) {
    folder.path_ = path;
    folder.lock_ = LockFolder(path);
  }
  if (folder.lock_ >= 0) return folder;
  return Error(StatusCode::kUnavailable,
               fmt::format("no folder can be made at {}: {}", path, std::strerror(errno)));
}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace portico
