#include "message/msgpack/reader.h"

#include <bit>

#include "text/utf8.h"

namespace portico::msgpack {

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kEnd:
      return "nothing";
    case Kind::kNil:
      return "nil";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kStr:
      return "str";
    case Kind::kBin:
      return "bin";
    case Kind::kArray:
      return "array";
    case Kind::kMap:
      return "map";
    case Kind::kExt:
      return "ext";
  }
  return "";
}

Kind Reader::Peek() const {
  if (failed_ || at_ == end_) return Kind::kEnd;
  const uint8_t head = Head();
  if (head < 0x80 || head >= 0xe0) return Kind::kInt;
  if (head < 0x90) return Kind::kMap;
  if (head < 0xa0) return Kind::kArray;
  if (head < 0xc0) return Kind::kStr;
  if (head == 0xc0) return Kind::kNil;
  if (head == 0xc1) return Kind::kEnd;
  if (head <= 0xc3) return Kind::kBool;
  if (head <= 0xc6) return Kind::kBin;
  if (head <= 0xc9) return Kind::kExt;
  if (head <= 0xcb) return Kind::kFloat;
  if (head <= 0xd3) return Kind::kInt;
  if (head <= 0xd8) return Kind::kExt;
  if (head <= 0xdb) return Kind::kStr;
  if (head <= 0xdd) return Kind::kArray;
  return Kind::kMap;
}

bool Reader::BigEndian(size_t bytes, uint64_t* value) {
  if (left() < bytes) return Fail();
  *value = 0;
  for (size_t i = 0; i < bytes; ++i) *value = *value << 8 | static_cast<uint8_t>(*at_++);
  return true;
}

bool Reader::Take(uint64_t size, std::string_view* value) {
  if (left() < size) return Fail();
  *value = {at_, static_cast<size_t>(size)};
  at_ += size;
  return true;
}

bool Reader::Nil() { return TakeNil() || Fail(); }

bool Reader::Bool(bool* value) {
  if (Peek() != Kind::kBool) return Fail();
  *value = static_cast<uint8_t>(*at_++) == 0xc3;
  return true;
}

bool Reader::Integer(uint64_t* bits, bool* negative) {
  if (Peek() != Kind::kInt) return Fail();
  const auto head = static_cast<uint8_t>(*at_++);
  *negative = false;
  if (head < 0x80) {
    *bits = head;
    return true;
  }
  if (head >= 0xe0) {
    *bits = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(head)));
    *negative = true;
    return true;
  }
  const bool is_signed = head >= 0xd0;
  const size_t bytes = size_t{1} << (head - (is_signed ? 0xd0 : 0xcc));
  if (!BigEndian(bytes, bits)) return false;
  if (is_signed) {
    const auto shift = static_cast<int>(64 - 8 * bytes);
    const int64_t value = static_cast<int64_t>(*bits << shift) >> shift;
    *bits = static_cast<uint64_t>(value);
    *negative = value < 0;
  }
  return true;
}

bool Reader::Int(int64_t* value) {
  uint64_t bits = 0;
  bool negative = false;
  if (!Integer(&bits, &negative)) return false;
  if (!negative && bits > INT64_MAX) return Fail();
  *value = static_cast<int64_t>(bits);
  return true;
}

bool Reader::Float(double* value) {
  if (Peek() == Kind::kInt) {
    uint64_t bits = 0;
    bool negative = false;
    if (!Integer(&bits, &negative)) return false;
    *value = negative ? static_cast<double>(static_cast<int64_t>(bits)) : static_cast<double>(bits);
    return true;
  }
  if (Peek() != Kind::kFloat) return Fail();
  const bool wide = static_cast<uint8_t>(*at_++) == 0xcb;
  uint64_t bits = 0;
  if (!BigEndian(wide ? 8 : 4, &bits)) return false;
  *value = wide ? std::bit_cast<double>(bits)
                : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return true;
}

bool Reader::Str(std::string_view* value) {
  if (Peek() != Kind::kStr) return Fail();
  const auto head = static_cast<uint8_t>(*at_++);
  uint64_t size = head & 0x1f;
  if (head >= 0xd9 && !BigEndian(size_t{1} << (head - 0xd9), &size)) return false;
  if (!Take(size, value)) return false;
  return IsValidUtf8(*value) || Fail();
}

bool Reader::Bin(std::string_view* value) {
  if (Peek() != Kind::kBin) return Fail();
  const auto head = static_cast<uint8_t>(*at_++);
  uint64_t size = 0;
  return BigEndian(size_t{1} << (head - 0xc4), &size) && Take(size, value);
}

bool Reader::Ext(int8_t* code, std::string_view* value) {
  if (Peek() != Kind::kExt) return Fail();
  const auto head = static_cast<uint8_t>(*at_++);
  uint64_t size = 0;
  if (head >= 0xd4) {
    size = uint64_t{1} << (head - 0xd4);
  } else if (!BigEndian(size_t{1} << (head - 0xc7), &size)) {
    return false;
  }
  if (left() == 0) return Fail();
  *code = static_cast<int8_t>(*at_++);
  return Take(size, value);
}

bool Reader::Array(uint32_t* size) {
  if (Peek() != Kind::kArray) return Fail();
  const auto head = static_cast<uint8_t>(*at_++);
  uint64_t count = head & 0x0f;
  if (head >= 0xdc && !BigEndian(head == 0xdc ? 2 : 4, &count)) return false;
  if (count > left()) return Fail();
  *size = static_cast<uint32_t>(count);
  return true;
}

bool Reader::Map(uint32_t* size) {
  if (Peek() != Kind::kMap) return Fail();
  const auto head = static_cast<uint8_t>(*at_++);
  uint64_t count = head & 0x0f;
  if (head >= 0xde && !BigEndian(head == 0xde ? 2 : 4, &count)) return false;
  if (2 * count > left()) return Fail();
  *size = static_cast<uint32_t>(count);
  return true;
}

bool Reader::Skip() {
  // Values still to be skipped. Each takes a byte at least, so it is bounded by the bytes that are left.
  uint64_t open = 1;
  while (open > 0) {
    --open;
    uint32_t size = 0;
    uint64_t bits = 0;
    bool flag = false;
    double number = 0;
    int8_t code = 0;
    std::string_view bytes;
    switch (Peek()) {
      case Kind::kEnd:
        return Fail();
      case Kind::kNil:
        ++at_;
        break;
      case Kind::kBool:
        if (!Bool(&flag)) return false;
        break;
      case Kind::kInt:
        if (!Integer(&bits, &flag)) return false;
        break;
      case Kind::kFloat:
        if (!Float(&number)) return false;
        break;
      case Kind::kStr:
        if (!Str(&bytes)) return false;
        break;
      case Kind::kBin:
        if (!Bin(&bytes)) return false;
        break;
      case Kind::kExt:
        if (!Ext(&code, &bytes)) return false;
        break;
      case Kind::kArray:
        if (!Array(&size)) return false;
        open += size;
        break;
      case Kind::kMap:
        if (!Map(&size)) return false;
        open += 2 * static_cast<uint64_t>(size);
        break;
    }
  }
  return true;
}

bool Reader::SkipTo(std::string_view* value) {
  const char* const from = at_;
  if (!Skip()) return false;
  *value = {from, static_cast<size_t>(at_ - from)};
  return true;
}

}  // namespace portico::msgpack
