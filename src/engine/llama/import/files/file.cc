#include "engine/llama/import/files/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

namespace portico::llama {
namespace {

constexpr time_t kCoarsestClock = 2;  // seconds

Status SyncPath(const std::string& path, int flags) {
  int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return FileError(path, "open", errno);
  int result = ::fsync(fd);
  int error_number = errno;
  ::close(fd);
  // Some file systems cannot sync a folder; the rename is then as durable as they make it.
  if (result != 0 && error_number != EINVAL) return FileError(path, "write", error_number);
  return OkStatus();
}

std::string FreeSpace(const std::string& path) {
  struct statvfs stat{};
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (::statvfs(folder.c_str(), &stat) != 0) return "unknown";
  double bytes = static_cast<double>(stat.f_bavail) * static_cast<double>(stat.f_frsize);
  return fmt::format("{:.1f} MB", bytes / 1e6);
}

}  // namespace

Status BadFile(const std::string& path, const std::string& fault) {
  return Error(StatusCode::kInvalidArgument, path + ": " + fault);
}

Status FileError(const std::string& path, const std::string& action, int error_number) {
  StatusCode code = StatusCode::kInternal;
  if (error_number == ENOENT || error_number == ENOTDIR) code = StatusCode::kNotFound;
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    code = StatusCode::kPermissionDenied;
  }
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    code = StatusCode::kResourceExhausted;
  }
  return Error(code, fmt::format("{}: cannot {}: {}", path, action,
                                 std::generic_category().message(error_number)));
}

StatusOr<InputFile> InputFile::Open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError(path, "open", errno);
  struct stat stat{};
  int result = ::fstat(fd, &stat);
  int error_number = errno;
  InputFile file(path, fd, result == 0 ? static_cast<uint64_t>(stat.st_size) : 0);
  if (result != 0) return FileError(path, "read", error_number);
  if (!S_ISREG(stat.st_mode)) return BadFile(path, "is not a regular file");
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status InputFile::ReadAt(uint64_t offset, void* out, size_t size) const {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    ssize_t got = ::pread(fd_, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path_, "read", errno);
    if (got == 0)
      return BadFile(path_, fmt::format("ends at byte {}, in the middle of data", offset));
    to += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return OkStatus();
}

StatusOr<std::string> InputFile::Stamp() const {
  struct stat stat{};
  if (::fstat(fd_, &stat) != 0) return FileError(path_, "read", errno);
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", stat.st_dev, stat.st_ino, stat.st_size,
                     stat.st_mtim.tv_sec, stat.st_mtim.tv_nsec, stat.st_ctim.tv_sec,
                     stat.st_ctim.tv_nsec);
}

bool InputFile::settled() const {
  struct stat stat{};
  return ::fstat(fd_, &stat) == 0 && stat.st_ctim.tv_sec + kCoarsestClock < ::time(nullptr);
}

StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit) {
  PORTICO_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  if (file.size() > limit) {
    return BadFile(path,
                   fmt::format("has {} bytes, more than the limit of {}", file.size(), limit));
  }
  std::string text(file.size(), '\0');
  PORTICO_RETURN_IF_ERROR(file.ReadAt(0, text.data(), text.size()));
  return text;
}

StatusOr<OutputFile> OutputFile::Create(const std::string& temp_path, uint64_t size) {
  int fd = ::open(temp_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return FileError(temp_path, "create", errno);
  OutputFile file(temp_path, fd);
  int failed = size > 0 ? ::posix_fallocate(fd, 0, static_cast<off_t>(size)) : 0;
  if (failed == ENOSPC || failed == EDQUOT || failed == EFBIG) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("{}: the disk is full: {:.1f} MB are needed and {} are free",
                             temp_path, static_cast<double>(size) / 1e6, FreeSpace(temp_path)));
  }
  // Any other failure means that the file system cannot reserve; writing will tell.
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), written_(other.written_) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(path_.c_str());
}

Status OutputFile::Append(const void* data, size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t done = ::write(fd_, from, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return FileError(path_, "write", errno);
    from += done;
    size -= static_cast<size_t>(done);
    written_ += static_cast<uint64_t>(done);
  }
  return OkStatus();
}

Status OutputFile::Close() {
  if (::ftruncate(fd_, static_cast<off_t>(written_)) != 0) return FileError(path_, "write", errno);
  if (::fsync(fd_) != 0) return FileError(path_, "write", errno);
  ::close(std::exchange(fd_, -1));
  return OkStatus();
}

Status OutputFile::Commit(const std::string& final_path) {
  PORTICO_RETURN_IF_ERROR(Close());
  return CommitFile(path_, final_path);
}

Status CommitFile(const std::string& temp_path, const std::string& final_path) {
  PORTICO_RETURN_IF_ERROR(SyncPath(temp_path, O_RDONLY));
  if (::rename(temp_path.c_str(), final_path.c_str()) != 0) {
    int error_number = errno;
    ::unlink(temp_path.c_str());
    return FileError(final_path, "create", error_number);
  }
  return SyncPath(std::filesystem::path(final_path).parent_path().string(), O_RDONLY | O_DIRECTORY);
}

}  // namespace portico::llama
