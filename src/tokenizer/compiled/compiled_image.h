// The bytes of a compiled file in memory, whose tables are used where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/compiled/zeroed_memory.h"

namespace portico::tokenizer {

// At a multiple of kCompiledAlignment, in huge pages. Immutable once made.
class CompiledImage {
 public:
  // A whole file of at most `max_bytes`; null where there is none. It is read rather than mapped: a file that somebody
  // cuts while it is mapped ends the process, and huge pages are faster to read into and to look things up in.
  static std::shared_ptr<const CompiledImage> Read(const std::string& path, uint64_t max_bytes);
  // A copy.
  explicit CompiledImage(std::string_view bytes);

  std::string_view text() const { return {data_.data(), size_}; }

 private:
  explicit CompiledImage(size_t size);

  ZeroedArray<char> data_;
  size_t size_;
};

}  // namespace portico::tokenizer
