// Appends to a vector with room to spare, so that an item costs a store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace portico::tokenizer {

// The vector has its right size again once the appender is gone.
template <typename T>
class Appender {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Room for `expected` items is made at once.
  explicit Appender(std::vector<T>* list, size_t expected = 0) : list_(list), size_(list->size()) {
    Reserve(size_ + expected);
  }
  ~Appender() { list_->resize(size_); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  size_t size() const { return size_; }
  T& operator[](size_t i) { return (*list_)[i]; }
  // The items from the one of that number on, valid until the next Room() or Append().
  std::span<const T> From(size_t first) const { return {list_->data() + first, size_ - first}; }

  // Room for `count` more, to be filled and then counted by Filled().
  T* Room(size_t count) {
    if (list_->size() - size_ < count) Grow(count);
    return list_->data() + size_;
  }
  void Filled(size_t count) { size_ += count; }

  void Append(T item) {
    *Room(1) = item;
    ++size_;
  }
  void Append(const T* from, size_t count) {
    if (count == 0) return;  // `from` may then be null
    std::memcpy(static_cast<void*>(Room(count)), from, count * sizeof(T));
    size_ += count;
  }

 private:
  // A vector clears what it grows by, so that is a little at a time, which is still in the nearest cache when it is
  // written.
  [[gnu::noinline]] void Grow(size_t count) {
    constexpr size_t kStep = 2048 / sizeof(T);
    const size_t needed = size_ + count + kStep;
    Reserve(needed);
    list_->resize(needed);
  }

  void Reserve(size_t needed) {
    if (list_->capacity() < needed) list_->reserve(std::max(needed, 2 * list_->capacity()));
  }

  std::vector<T>* list_;
  size_t size_;
};

}  // namespace portico::tokenizer
