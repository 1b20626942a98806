#include "engine/llama/import/cache/import_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cache_folder.h"
#include "base/folder_entries.h"
#include "engine/llama/import/files/file.h"

namespace portico::llama {
namespace {

namespace fs = std::filesystem;

std::string LockPath(const ImportCache& cache, const std::string& key) {
  return (fs::path(cache.folder()) / (key + ".lock")).string();
}

// "KEY.seal" beside "KEY.gguf". Its time tells when the import was last used.
fs::path SealBeside(const fs::path& path) { return fs::path(path).replace_extension(".seal"); }

int OpenLock(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

// Removes a file that nobody uses, with its key locked so that nobody replaces it meanwhile.
bool RemoveUnused(const ImportCache& cache, const fs::path& path) {
  const int lock = OpenLock(LockPath(cache, path.stem().string()));
  if (lock < 0) return false;
  bool removed = false;
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    removed = file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0;
    if (removed) ::unlink(SealBeside(path).c_str());
    if (file >= 0) ::close(file);
  }
  ::close(lock);
  return removed;
}

}  // namespace

std::optional<ImportUse> ImportUse::Of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  ImportUse use(fd);
  // Who removes a file holds it alone until it has no name.
  struct stat stat{};
  if (::flock(fd, LOCK_SH) != 0 || ::fstat(fd, &stat) != 0 || stat.st_nlink == 0) {
    return std::nullopt;
  }
  // The file's own times stay, so that its hash need not be taken anew.
  ::utimensat(AT_FDCWD, SealBeside(path).c_str(), nullptr, 0);
  return use;
}

ImportUse::ImportUse(ImportUse&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ImportUse& ImportUse::operator=(ImportUse&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

ImportUse::~ImportUse() {
  if (fd_ >= 0) ::close(fd_);
}

StatusOr<ImportCache> ImportCache::Open() {
  PORTICO_ASSIGN_OR_RETURN(std::string base, CacheFolder());
  fs::path folder = fs::path(base) / "models";
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return FileError(folder.string(), "create", failure.value());
  return ImportCache(folder.string());
}

std::string ImportCache::PathOf(const std::string& key) const {
  return (fs::path(folder_) / (key + ".gguf")).string();
}

std::string ImportCache::TempPathOf(const std::string& key) const {
  static std::atomic<int> serial = 0;
  return (fs::path(folder_) / fmt::format("{}.{}-{}.tmp", key, ::getpid(), serial++)).string();
}

Status ImportCache::WriteSeal(const std::string& key, const std::string& hash) const {
  const std::string path = SealBeside(PathOf(key)).string();
  PORTICO_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(TempPathOf(key), hash.size()));
  PORTICO_RETURN_IF_ERROR(file.Append(hash.data(), hash.size()));
  return file.Commit(path);
}

std::optional<std::string> ImportCache::ReadSeal(const std::string& key) const {
  constexpr size_t kMost = 1 << 10;
  auto text = ReadTextFile(SealBeside(PathOf(key)).string(), kMost);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

void ImportCache::RemoveLeftovers() const {
  std::error_code ignored;
  for (const fs::directory_entry& entry : FolderEntries(folder_, &ignored)) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(".tmp")) continue;
    std::string key = name.substr(0, name.find('.'));
    int fd = OpenLock(LockPath(*this, key));
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) fs::remove(entry.path(), ignored);
    ::close(fd);
  }
}

void ImportCache::Trim(uint64_t max_bytes) const {
  std::vector<CachedFile> files = CachedFiles(folder_);
  std::erase_if(files, [](const CachedFile& file) {
    const fs::path extension = file.path.extension();
    return extension != ".gguf" && extension != ".hash";
  });
  std::error_code failure;
  for (CachedFile& file : files) {
    const auto used = fs::last_write_time(SealBeside(file.path), failure);
    if (!failure) file.used = used;
  }
  TrimCache(std::move(files), max_bytes, [&](const fs::path& path) {
    return path.extension() == ".hash" ? fs::remove(path, failure) : RemoveUnused(*this, path);
  });
}

StatusOr<ImportLock> ImportLock::Acquire(const ImportCache& cache, const std::string& key,
                                         const std::function<void()>& waiting) {
  const std::string path = LockPath(cache, key);
  int fd = OpenLock(path);
  if (fd < 0) return FileError(path, "create", errno);
  ImportLock lock(fd);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FileError(path, "lock", errno);
    waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return lock;
}

ImportLock::ImportLock(ImportLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ImportLock::~ImportLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace portico::llama
