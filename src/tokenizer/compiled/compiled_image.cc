#include "tokenizer/compiled/compiled_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace portico::tokenizer {
namespace {

bool ReadAll(int fd, char* to, size_t size) {
  while (size > 0) {
    ssize_t n = read(fd, to, size);
    if (n <= 0) return false;
    to += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

CompiledImage::CompiledImage(size_t size) : data_(std::max<size_t>(size, 1)), size_(size) {}

CompiledImage::CompiledImage(std::string_view bytes) : CompiledImage(bytes.size()) {
  if (!bytes.empty()) std::memcpy(data_.data(), bytes.data(), bytes.size());
}

std::shared_ptr<const CompiledImage> CompiledImage::Read(const std::string& path,
                                                         uint64_t max_bytes) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  std::shared_ptr<CompiledImage> out;
  struct stat info = {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      static_cast<uint64_t>(info.st_size) <= max_bytes) {
    out.reset(new CompiledImage(static_cast<size_t>(info.st_size)));
    if (!ReadAll(fd, out->data_.data(), out->size_)) out.reset();
  }
  close(fd);
  return out;
}

}  // namespace portico::tokenizer
