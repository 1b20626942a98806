// What HashFiles() has said of files that nobody has touched since, so that not every start reads all
// weights twice. Files are known by path, device, inode, size and both times; of these no program
// can set the time of the last change, so that restored modification times deceive nobody.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/files/file.h"

namespace portico::llama {

class HashMemory {
 public:
  // In `folder`, one small file for each set of files. Errors: as InputFile::Stamp().
  static StatusOr<HashMemory> Of(const std::string& folder, const std::vector<InputFile>& files);

  // The hash, if the files are as they were when it was stored.
  std::optional<std::string> Find() const;
  // Remembers the hash of the files as they were at Of(), unless they had changed shortly before: a
  // change in the same tick of the file system's clock would not show. A failure is none.
  void Store(const std::string& hash) const;
  // The same files, untouched between the two.
  bool operator==(const HashMemory& other) const { return path_ == other.path_; }

 private:
  HashMemory(std::string path, bool settled) : path_(std::move(path)), settled_(settled) {}
  std::string path_;
  bool settled_;
};

}  // namespace portico::llama
