// Allocation in this program: mimalloc gives the memory (cmake/PorticoDependencies.cmake), and `new` throws where there
// is none. Debian's mimalloc is built as C, and its operator new ends the process instead: every catch of
// std::bad_alloc would be in vain, and a damaged file that asks for too much would end a server.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// malloc's own alignment is enough up to max_align_t.
void* AllocateOrNull(std::size_t size) noexcept { return std::malloc(size == 0 ? 1 : size); }

void* AllocateAlignedOrNull(std::size_t size, std::align_val_t align) noexcept {
  void* memory = nullptr;
  return posix_memalign(&memory, static_cast<std::size_t>(align), size == 0 ? 1 : size) == 0
             ? memory
             : nullptr;
}

template <typename Allocate>
void* AllocateOrThrow(Allocate allocate) {
  for (;;) {
    if (void* memory = allocate()) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(std::size_t size) {
  // Of no bytes mimalloc gives memory, too; where a malloc gives none, it is asked for one.
  if (void* memory = std::malloc(size)) [[likely]]
    return memory;
  return AllocateOrThrow([size] { return AllocateOrNull(size); });
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size);
}
void* operator new(std::size_t size, std::align_val_t align) {
  return AllocateOrThrow([=] { return AllocateAlignedOrNull(size, align); });
}
void* operator new[](std::size_t size, std::align_val_t align) { return operator new(size, align); }
void* operator new(std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return AllocateAlignedOrNull(size, align);
}
void* operator new[](std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return AllocateAlignedOrNull(size, align);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
