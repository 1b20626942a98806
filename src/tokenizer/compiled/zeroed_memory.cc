#include "tokenizer/compiled/zeroed_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace portico::tokenizer {
namespace {

constexpr size_t kPage = 4096;

size_t RoundedUp(size_t bytes) {
  size_t align = bytes >= kHugePage ? kHugePage : kPage;
  return (bytes + align - 1) / align * align;
}

}  // namespace

void FreeZeroed::operator()(void* memory) const { munmap(memory, bytes); }

void FreeZeroedBytes(void* memory, size_t bytes) { munmap(memory, RoundedUp(bytes)); }

std::unique_ptr<void, FreeZeroed> AllocateZeroed(size_t bytes) {
  bytes = RoundedUp(bytes);
  size_t mapped = bytes >= kHugePage ? bytes + kHugePage : bytes;
  void* begin = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  auto* at = static_cast<char*>(begin);
  if (mapped > bytes) {
    size_t front = (kHugePage - reinterpret_cast<uintptr_t>(at) % kHugePage) % kHugePage;
    if (front > 0) munmap(at, front);
    at += front;
    if (mapped - front > bytes) munmap(at + bytes, mapped - front - bytes);
    madvise(at, bytes, MADV_HUGEPAGE);
  }
  return {at, FreeZeroed{bytes}};
}

void TouchPages(void* memory, size_t bytes) {
  const size_t page = bytes >= kHugePage ? kHugePage : kPage;
  auto* at = static_cast<volatile char*>(memory);
  for (size_t i = 0; i < bytes; i += page) at[i] = 0;
}

}  // namespace portico::tokenizer
