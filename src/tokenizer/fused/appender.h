// Ways to append to a vector, many items at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <type_traits>
#include <vector>

namespace portico::tokenizer {

// Room for `needed` items in all. A list that has room for some gets at least twice as much, so that calls one after the
// other do not copy it each time.
template <typename T>
void MakeRoom(size_t needed, std::vector<T>* list) {
  if (list->capacity() < needed) list->reserve(std::max(needed, 2 * list->capacity()));
}

// The same where `done` bytes of a text, more than none, gave `so_far` items, the last of the `size` that are in the list, and
// `left` bytes will give as many each: a list that grows bit by bit is copied, and every new page of memory costs.
template <typename T>
void Foresee(size_t so_far, size_t done, size_t left, size_t size, std::vector<T>* list) {
  const size_t expected = so_far * left / done;
  if (list->capacity() - size < expected) MakeRoom(size + expected + expected / 16, list);
}

// As an iterator: what `item` gives for one number after the other.
template <typename T, typename Item>
struct ItemAt {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = ptrdiff_t;
  using pointer = const T*;
  using reference = T;

  T operator*() const { return (*item)(static_cast<size_t>(i)); }
  ItemAt& operator++() {
    ++i;
    return *this;
  }
  ItemAt& operator--() {
    --i;
    return *this;
  }
  ItemAt& operator+=(ptrdiff_t n) {
    i += n;
    return *this;
  }
  ptrdiff_t operator-(const ItemAt& other) const { return i - other.i; }
  bool operator==(const ItemAt& other) const { return i == other.i; }

  const Item* item;
  ptrdiff_t i;
};

// Appends item(i) for i from 0 to `count` - 1. Unlike a resize() this does not clear first what is then written.
template <typename T, typename Item>
void AppendEach(std::vector<T>* list, size_t count, const Item& item) {
  using At = ItemAt<T, Item>;
  list->insert(list->end(), At{&item, 0}, At{&item, static_cast<ptrdiff_t>(count)});
}

// Appends with room to spare, so that an item costs a store. The vector has its right size again once this is gone.
template <typename T>
class Appender {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Room for `expected` items is made at once.
  explicit Appender(std::vector<T>* list, size_t expected = 0)
      : list_(list), size_(list->size()), first_(size_) {
    MakeRoom(size_ + expected, list_);
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

  // `done` bytes of a text gave what this has appended, and `left` are to come.
  void Foresee(size_t done, size_t left) {
    tokenizer::Foresee(size_ - first_, done, left, size_, list_);
  }

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
  // written; and no more than there is already, since most texts of a chat are a few tokens.
  [[gnu::noinline]] void Grow(size_t count) {
    constexpr size_t kLeast = 64 / sizeof(T);
    constexpr size_t kStep = 2048 / sizeof(T);
    const size_t needed = size_ + count + std::clamp(size_ - first_, kLeast, kStep);
    MakeRoom(needed, list_);
    list_->resize(needed);
  }

  std::vector<T>* list_;
  size_t size_;
  const size_t first_;
};

}  // namespace portico::tokenizer
