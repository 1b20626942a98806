// Large tables of zeros that cost nothing until they are touched.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace portico::tokenizer {

inline constexpr size_t kHugePage = size_t{2} << 20;

// `bytes` of zeroed memory at a multiple of 64 bytes, in huge pages where the system has them to give (a random access
// then needs no walk of page tables). Throws std::bad_alloc.
struct FreeZeroed {
  size_t bytes = 0;
  void operator()(void* memory) const;
};
std::unique_ptr<void, FreeZeroed> AllocateZeroed(size_t bytes);
// Of what was released from such a pointer, for as many bytes as it was asked for.
void FreeZeroedBytes(void* memory, size_t bytes);

// Has the system make the pages of such memory now, and nobody wait for them later: a huge one may take as long as encoding
// a thousand words, and where a virtual machine must first get the memory from its host, ten times that. One that is read
// before it is written is made twice, and the second time every processor that runs a thread of this process must be told.
void TouchPages(void* memory, size_t bytes);

// An array of `count` zeroed objects.
template <typename T>
class ZeroedArray {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  explicit ZeroedArray(size_t count) : memory_(AllocateZeroed(count * sizeof(T))) {}
  T& operator[](size_t i) { return static_cast<T*>(memory_.get())[i]; }
  const T& operator[](size_t i) const { return static_cast<const T*>(memory_.get())[i]; }
  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }
  void Touch() { TouchPages(memory_.get(), memory_.get_deleter().bytes); }

 private:
  std::unique_ptr<void, FreeZeroed> memory_;
};

}  // namespace portico::tokenizer
