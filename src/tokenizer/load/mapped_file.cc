#include "tokenizer/load/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace portico::tokenizer {

StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  auto failed = [&] {
    int error = errno;
    return Error(error == ENOENT ? StatusCode::kNotFound : StatusCode::kInvalidArgument,
                 "cannot read " + path + ": " + std::strerror(error));
  };
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed();
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (errno == 0 || S_ISDIR(info.st_mode)) errno = EISDIR;
    Status status = failed();
    close(fd);
    return status;
  }
  auto size = static_cast<size_t>(info.st_size);
  // The file goes over the front of an empty stretch of memory that is longer.
  void* data = mmap(nullptr, size + kPadding, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Status status = data == MAP_FAILED ? failed() : OkStatus();
  if (status.ok() && size > 0 &&
      mmap(data, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
    status = failed();
    munmap(data, size + kPadding);
  }
  close(fd);
  PORTICO_RETURN_IF_ERROR(status);
  return MappedFile(static_cast<const char*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_ + kPadding);
}

}  // namespace portico::tokenizer
