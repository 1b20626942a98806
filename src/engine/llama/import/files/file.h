// Files as the import needs them: exact reads at an offset (never mmap: a file cut while it is
// mapped kills the process), and outputs that are complete under their final name or not there at
// all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace portico::llama {

// INVALID_ARGUMENT "PATH: fault": what every complaint about a model's file looks like.
Status BadFile(const std::string& path, const std::string& fault);

// "PATH: cannot ACTION: REASON" for errno, with the code that fits (NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED for a full disk, …).
Status FileError(const std::string& path, const std::string& action, int error_number);

// A regular file open for reading. ReadAt() may be called by several threads at once.
class InputFile {
 public:
  static StatusOr<InputFile> Open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Reads exactly `size` bytes; a file that ends before is an error.
  Status ReadAt(uint64_t offset, void* out, size_t size) const;

  // Identity, size and times of the file as it is now: another value means that it was written to.
  StatusOr<std::string> Stamp() const;
  // Whether it was left alone for so long that a change from now on shows in the stamp, however
  // coarse the file system's clock is.
  bool settled() const;

 private:
  InputFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// The whole of a small text file. Errors: as Open(), and longer than `limit`.
StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit = 64u << 20);

// A file under a temporary name, removed again unless Commit() has given it its final one.
class OutputFile {
 public:
  // Creates (or empties) `temp_path` and reserves `size` bytes, so that a full disk shows before
  // the work.
  static StatusOr<OutputFile> Create(const std::string& temp_path, uint64_t size);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Status Append(const void* data, size_t size);
  uint64_t written() const { return written_; }

  // Everything on disk, then renamed to `final_path` (replacing what is there), then the folder on
  // disk.
  Status Commit(const std::string& final_path);
  // Everything on disk, and the file kept under its temporary name.
  Status Close();

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

// fsync of `temp_path`, rename to `final_path`, fsync of the folder: for files that a library
// wrote.
Status CommitFile(const std::string& temp_path, const std::string& final_path);

}  // namespace portico::llama
