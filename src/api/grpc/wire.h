// Appends protobuf's wire format to a string: streamed messages are written straight as bytes.
// Field numbers here are at most 15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace portico::api::rpc {

inline void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

// Of a string, bytes, a packed list or a message, whose length and bytes follow.
inline void AppendTag(int number, std::string* out) {
  out->push_back(static_cast<char>(number << 3 | 2));
}

// A string, bytes or a packed list.
inline void AppendBytesField(int number, std::string_view bytes, std::string* out) {
  AppendTag(number, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

inline void AppendVarintField(int number, uint64_t value, std::string* out) {
  out->push_back(static_cast<char>(number << 3));
  AppendVarint(value, out);
}

inline constexpr size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// What AppendBytesField() appends for so many bytes.
inline constexpr size_t BytesFieldSize(size_t bytes) { return 1 + VarintSize(bytes) + bytes; }

// An entry of a map<string, string>.
inline void AppendMapEntry(int number, std::string_view key, std::string_view value,
                           std::string* out) {
  out->push_back(static_cast<char>(number << 3 | 2));
  AppendVarint(2 + VarintSize(key.size()) + key.size() + VarintSize(value.size()) + value.size(),
               out);
  AppendBytesField(1, key, out);
  AppendBytesField(2, value, out);
}

}  // namespace portico::api::rpc
