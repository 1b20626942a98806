// Appends MessagePack to a string, each value in its shortest encoding, as msgspec and the reference implementations
// write it. Source: the MessagePack specification (github.com/msgpack/msgpack/blob/master/spec.md).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace portico::msgpack {

class Writer {
 public:
  // `out` outlives the writer; values are appended to it.
  explicit Writer(std::string* out) : out_(out) {}

  void Nil() { Byte(0xc0); }
  void Bool(bool value) { Byte(value ? 0xc3 : 0xc2); }
  void Int(int64_t value) {
    if (value >= 0) return Uint(static_cast<uint64_t>(value));
    if (value >= -32) return Byte(static_cast<uint8_t>(value));
    if (value >= INT8_MIN) return Tagged(0xd0, static_cast<uint8_t>(value));
    if (value >= INT16_MIN) return Tagged(0xd1, static_cast<uint16_t>(value));
    if (value >= INT32_MIN) return Tagged(0xd2, static_cast<uint32_t>(value));
    Tagged(0xd3, static_cast<uint64_t>(value));
  }
  void Uint(uint64_t value) {
    if (value < 128) return Byte(static_cast<uint8_t>(value));
    if (value <= UINT8_MAX) return Tagged(0xcc, static_cast<uint8_t>(value));
    if (value <= UINT16_MAX) return Tagged(0xcd, static_cast<uint16_t>(value));
    if (value <= UINT32_MAX) return Tagged(0xce, static_cast<uint32_t>(value));
    Tagged(0xcf, value);
  }
  // Always 64 bits wide: Python has no other.
  void Float(double value) { Tagged(0xcb, std::bit_cast<uint64_t>(value)); }
  void Str(std::string_view value) {
    StrHead(value.size());
    out_->append(value);
  }
  void Bin(std::string_view value) {
    BinHead(value.size());
    out_->append(value);
  }
  // The bytes follow; at most 2^32 - 1 of them, as everywhere here.
  void BinHead(size_t size) {
    if (size <= UINT8_MAX) return Tagged(0xc4, static_cast<uint8_t>(size));
    if (size <= UINT16_MAX) return Tagged(0xc5, static_cast<uint16_t>(size));
    Tagged(0xc6, static_cast<uint32_t>(size));
  }
  void ExtHead(int8_t code, size_t size) {
    switch (size) {
      case 1:
      case 2:
      case 4:
      case 8:
      case 16:
        Byte(static_cast<uint8_t>(0xd4 + std::countr_zero(size)));
        break;
      default:
        if (size <= UINT8_MAX) {
          Tagged(0xc7, static_cast<uint8_t>(size));
        } else if (size <= UINT16_MAX) {
          Tagged(0xc8, static_cast<uint16_t>(size));
        } else {
          Tagged(0xc9, static_cast<uint32_t>(size));
        }
    }
    Byte(static_cast<uint8_t>(code));
  }
  // So many values follow.
  void Array(size_t size) {
    if (size < 16) return Byte(static_cast<uint8_t>(0x90 | size));
    if (size <= UINT16_MAX) return Tagged(0xdc, static_cast<uint16_t>(size));
    Tagged(0xdd, static_cast<uint32_t>(size));
  }
  // So many keys, each with its value, follow.
  void Map(size_t size) {
    if (size < 16) return Byte(static_cast<uint8_t>(0x80 | size));
    if (size <= UINT16_MAX) return Tagged(0xde, static_cast<uint16_t>(size));
    Tagged(0xdf, static_cast<uint32_t>(size));
  }
  // A 32-bit big-endian number outside any value: the frame of a buffer in an extension.
  void BigEndian32(uint32_t value) { Big(value); }
  // Values, or part of one, encoded already.
  void Raw(std::string_view encoded) { out_->append(encoded); }

 private:
  void StrHead(size_t size) {
    if (size < 32) return Byte(static_cast<uint8_t>(0xa0 | size));
    if (size <= UINT8_MAX) return Tagged(0xd9, static_cast<uint8_t>(size));
    if (size <= UINT16_MAX) return Tagged(0xda, static_cast<uint16_t>(size));
    Tagged(0xdb, static_cast<uint32_t>(size));
  }
  void Byte(uint8_t byte) { out_->push_back(static_cast<char>(byte)); }
  template <typename T>
  void Big(T value) {
    char bytes[sizeof(T)];
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes[i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
    }
    out_->append(bytes, sizeof(T));
  }
  template <typename T>
  void Tagged(uint8_t tag, T value) {
    Byte(tag);
    Big(value);
  }

  std::string* out_;
};

}  // namespace portico::msgpack
