// The metadata of a GGUF file (versions 2 and 3, little-endian): only what a tokenizer needs is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace portico::tokenizer {

// Views into the file's bytes, which must outlive it.
class GgufMetadata {
 public:
  // An array whose items are read on demand.
  struct Array {
    uint32_t type = 0;
    uint64_t count = 0;
    std::string_view bytes;  // of all items, checked
  };
  using Value = std::variant<uint64_t, int64_t, double, bool, std::string_view, Array>;

  // Reads the metadata at the start of `file`. Damaged files are errors; nothing is allocated by their claims.
  static StatusOr<GgufMetadata> Parse(std::string_view file);

  // How many bytes of the file it takes.
  size_t size() const { return size_; }

  const Value* Find(std::string_view key) const;
  // The text of a key; "" where there is none.
  std::string_view Text(std::string_view key) const;
  // The number of a key of any integer type.
  std::optional<int64_t> Integer(std::string_view key) const;
  std::optional<bool> Flag(std::string_view key) const;
  // The items of an array of that kind; empty where there is none.
  std::vector<std::string_view> Texts(std::string_view key) const;
  std::vector<float> Floats(std::string_view key) const;
  std::vector<int32_t> Integers(std::string_view key) const;
  // The raw bytes of an array of 8-bit integers.
  std::string_view Bytes(std::string_view key) const;

 private:
  std::map<std::string_view, Value> values_;
  size_t size_ = 0;
};

}  // namespace portico::tokenizer
