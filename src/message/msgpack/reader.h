// Reads MessagePack where it lies, value by value, without a tree and without recursion. Meant for bytes of a process
// that may be wrong: no length is believed beyond the bytes that are there.
//
// A read that does not fit (another kind, a number out of range, bytes that end early) returns false and leaves the
// reader failed: every later read returns false too, so that only the end of a group of reads needs a look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace portico::msgpack {

enum class Kind : uint8_t {
  kEnd,  // no value: the bytes have ended, or a reserved byte follows
  kNil,
  kBool,
  kInt,
  kFloat,
  kStr,
  kBin,
  kArray,
  kMap,
  kExt,
};
// "int", "array", …
std::string_view KindName(Kind kind);

class Reader {
 public:
  // The bytes outlive the reader and what it returns.
  explicit Reader(std::string_view bytes)
      : begin_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool failed() const { return failed_; }
  // All bytes are read and nothing failed.
  bool done() const { return !failed_ && at_ == end_; }
  size_t offset() const { return static_cast<size_t>(at_ - begin_); }
  // Of the next value; kEnd after a failure.
  Kind Peek() const;

  bool Nil();
  // Takes a nil if one is next.
  bool TakeNil() {
    if (Peek() != Kind::kNil) return false;
    ++at_;
    return true;
  }
  bool Bool(bool* value);
  bool Int(int64_t* value);
  // `negative`: the value is int64_t(*bits), else it is *bits.
  bool Integer(uint64_t* bits, bool* negative);
  // Takes integers too, as msgspec does.
  bool Float(double* value);
  // Valid UTF-8.
  bool Str(std::string_view* value);
  bool Bin(std::string_view* value);
  bool Ext(int8_t* code, std::string_view* value);
  // So many values follow; at most as many as bytes are left.
  bool Array(uint32_t* size);
  bool Map(uint32_t* size);
  // Any value with all that is in it. Time and memory are linear in its bytes, whatever its depth.
  bool Skip();
  // The same, and gives the value's bytes.
  bool SkipTo(std::string_view* value);

 private:
  bool Fail() {
    failed_ = true;
    return false;
  }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  uint8_t Head() const { return static_cast<uint8_t>(*at_); }
  bool BigEndian(size_t bytes, uint64_t* value);
  bool Take(uint64_t size, std::string_view* value);

  const char* begin_;
  const char* at_;
  const char* end_;
  bool failed_ = false;
};

}  // namespace portico::msgpack
