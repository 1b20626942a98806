#include "app/read_file.h"

#include <fstream>

namespace portico {

StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[16384];
  while (file.read(block, sizeof(block)) || file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
  }
  // A folder can be opened, but not read.
  if (!file.is_open() || file.bad()) return Error(StatusCode::kNotFound, "cannot read " + path);
  return text;
}

}  // namespace portico
