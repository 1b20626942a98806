#include "pipeline/blob.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace portico::pipeline {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr off_t kMaxBytes = off_t{1} << 32;

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

void Fd::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::shared_ptr<const Blob> Blob::Own(std::string bytes) {
  std::shared_ptr<Blob> blob(new Blob);
  blob->heap_ = std::move(bytes);
  return blob;
}

StatusOr<std::shared_ptr<const Blob>> Blob::Share(std::string_view bytes) {
  Fd fd(memfd_create("portico", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || !WriteAll(fd.get(), bytes) || fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return Error(StatusCode::kUnavailable, fmt::format("no shared memory for {} bytes: {}",
                                                       bytes.size(), std::strerror(errno)));
  }
  return Map(std::move(fd));
}

StatusOr<std::shared_ptr<const Blob>> Blob::Map(Fd fd) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat facts{};
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &facts) != 0 ||
      facts.st_size > kMaxBytes) {
    return Error(StatusCode::kInvalidArgument, "the descriptor is no sealed memfd");
  }
  std::shared_ptr<Blob> blob(new Blob);
  blob->size_ = static_cast<size_t>(facts.st_size);
  blob->fd_ = std::move(fd);
  if (blob->size_ == 0) return blob;
  void* mapped = mmap(nullptr, blob->size_, PROT_READ, MAP_SHARED, blob->fd_.get(), 0);
  if (mapped == MAP_FAILED) {
    return Error(StatusCode::kUnavailable, fmt::format("mmap: {}", std::strerror(errno)));
  }
  blob->mapped_ = mapped;
  return blob;
}

Blob::~Blob() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
}

}  // namespace portico::pipeline
