#include "app/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace portico {

Status CannotRead(const std::string& path, int error) {
  std::string message = "cannot read " + path;
  if (error != 0) message.append(": ").append(std::strerror(error));
  return Error(StatusCode::kNotFound, std::move(message));
}

StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[16384];
  while (file.read(block, sizeof(block)) || file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
  }
  // A folder can be opened, but not read.
  if (!file.is_open() || file.bad()) return CannotRead(path, errno);
  return text;
}

}  // namespace portico
