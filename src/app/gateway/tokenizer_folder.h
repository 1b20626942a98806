// The tokenizer that a worker has sent, as files.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace portico {

// A folder that is gone with this object.
class TempFolder {
 public:
  static StatusOr<TempFolder> Make();
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The files of an archive (engine/grpc/tokenizer_files.h) in a folder of their own.
StatusOr<TempFolder> UnpackTokenizer(const std::string& archive);

}  // namespace portico
