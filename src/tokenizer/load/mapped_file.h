// A whole file for reading, mapped rather than copied.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::tokenizer {

// Movable; unmapped when it goes. The file must not change while it is open.
class MappedFile {
 public:
  static StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Readable bytes behind the text, for readers of many bytes at once.
  static constexpr size_t kPadding = 64;

  std::string_view text() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}

  const char* data_;
  size_t size_;
};

}  // namespace portico::tokenizer
