// Bump allocation for one parse or one render: nothing is freed before the arena is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace portico::jinja {

// Thrown by Arena at its limit; caught in Template::Render().
struct OutOfMemory {};

// Not thread-safe. Objects are never destroyed, so they must be trivially destructible.
class Arena {
 public:
  explicit Arena(size_t limit = SIZE_MAX) : limit_(limit) {}
  ~Arena() {
    for (char* block : blocks_) std::free(block);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Begins with memory of the caller's, which must outlive the arena.
  void UseFirst(char* block, size_t size) {
    next_ = block;
    end_ = block + size;
  }

  void* Allocate(size_t size, size_t alignment = alignof(std::max_align_t)) {
    char* start = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(next_) + alignment - 1) &
                                          ~(uintptr_t{alignment} - 1));
    if (next_ == nullptr || start > end_ || size > static_cast<size_t>(end_ - start)) {
      return AllocateSlow(size);
    }
    next_ = start + size;
    return start;
  }

  template <typename T, typename... Args>
  T* New(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (Allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }
  // Uninitialized room for `count` objects.
  template <typename T>
  T* NewArray(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > SIZE_MAX / 2 / sizeof(T)) throw OutOfMemory{};
    return static_cast<T*>(Allocate(count * sizeof(T), alignof(T)));
  }
  char* NewChars(size_t count) { return static_cast<char*>(Allocate(count, 1)); }
  std::string_view Copy(std::string_view text) {
    if (text.empty()) return {};
    char* to = NewChars(text.size());
    std::memcpy(to, text.data(), text.size());
    return {to, text.size()};
  }
  // Counts memory that a render keeps elsewhere against the same limit.
  void Charge(size_t size) {
    if (size > limit_ - used_) throw OutOfMemory{};
    used_ += size;
  }

 private:
  void* AllocateSlow(size_t size) {
    size_t block_size = blocks_.empty() ? size_t{16} << 10 : size_t{64} << 10;
    const bool own_block = size > block_size / 4;
    if (own_block) block_size = size;
    Charge(block_size);
    char* block = static_cast<char*>(std::malloc(block_size == 0 ? 1 : block_size));
    if (block == nullptr) throw OutOfMemory{};
    blocks_.push_back(block);
    if (!own_block) {
      next_ = block + size;
      end_ = block + block_size;
    }
    return block;
  }

  size_t limit_;
  size_t used_ = 0;
  char* next_ = nullptr;
  char* end_ = nullptr;
  std::vector<char*> blocks_;
};

}  // namespace portico::jinja
