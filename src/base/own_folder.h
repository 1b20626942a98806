// Folders for what a process needs while it runs: sockets, unpacked files.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace portico {

// Only this user enters it. It is removed with the object; what a process that was killed has left is removed when the next is
// made with the same prefix, by whichever process of this user.
class OwnFolder {
 public:
  // `prefix` and six characters: "/tmp/portico-sockets-". UNAVAILABLE with the path: it cannot be made. Any thread.
  static StatusOr<OwnFolder> Make(const std::string& prefix);
  // None.
  OwnFolder() = default;
  ~OwnFolder();
  OwnFolder(OwnFolder&& other) noexcept { Swap(other); }
  OwnFolder& operator=(OwnFolder&& other) noexcept {
    Swap(other);
    return *this;
  }
  const std::string& path() const { return path_; }

 private:
  void Swap(OwnFolder& other) {
    path_.swap(other.path_);
    std::swap(lock_, other.lock_);
  }

  std::string path_;
  // Of a file in it, held with flock(2): the kernel lets go of it with the process.
  int lock_ = -1;
};

}  // namespace portico
