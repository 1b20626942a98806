// The rows of a table that is either built in memory or lies ready in a compiled file.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tokenizer/compiled/zeroed_memory.h"

namespace portico::tokenizer {

// For vectors that may be large tables: from the size of a huge page on they lie in huge pages.
template <typename T>
struct TableAllocator {
  using value_type = T;

  TableAllocator() = default;
  template <typename U>
  TableAllocator(const TableAllocator<U>&) {}  // NOLINT: as the standard asks

  T* allocate(size_t count) {
    if (count > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    if (IsLarge(count)) return static_cast<T*>(AllocateZeroed(count * sizeof(T)).release());
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{kAlignment}));
  }
  void deallocate(T* rows, size_t count) {
    if (IsLarge(count)) {
      FreeZeroedBytes(rows, count * sizeof(T));
    } else {
      ::operator delete(rows, std::align_val_t{kAlignment});
    }
  }
  friend bool operator==(const TableAllocator&, const TableAllocator&) { return true; }

 private:
  static constexpr size_t kAlignment = 64;
  static bool IsLarge(size_t count) { return count * sizeof(T) >= kHugePage; }
};

// A vector, or a view of rows that outlive it. Changing a view makes it a vector first.
template <typename T>
class StoredRows {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  StoredRows() = default;
  explicit StoredRows(size_t count, const T& value = T()) { assign(count, value); }
  StoredRows(StoredRows&& other) noexcept
      : own_(std::move(other.own_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  StoredRows& operator=(StoredRows&& other) noexcept {
    own_ = std::move(other.own_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  static StoredRows View(std::span<const T> rows) {
    StoredRows out;
    out.data_ = rows.data();
    out.size_ = rows.size();
    return out;
  }

  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& back() const { return data_[size_ - 1]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  T& Edit(size_t i) { return Own()[i]; }
  void push_back(const T& row) {
    Own().push_back(row);
    Sync();
  }
  void append(const T* rows, size_t count) {
    Own().insert(Own().end(), rows, rows + count);
    Sync();
  }
  void assign(size_t count, const T& value) {
    own_.assign(count, value);
    Sync();
  }
  void resize(size_t count, const T& value = T()) {
    if (data_ != own_.data()) own_.reserve(count);  // or the copy would be copied again
    Own().resize(count, value);
    Sync();
  }
  void reserve(size_t count) {
    Own().reserve(count);
    Sync();
  }
  void shrink_to_fit() {
    if (data_ != own_.data()) return;
    own_.shrink_to_fit();
    Sync();
  }

 private:
  using Vector = std::vector<T, TableAllocator<T>>;

  Vector& Own() {
    if (data_ != own_.data()) {
      own_.assign(data_, data_ + size_);
      data_ = own_.data();
    }
    return own_;
  }
  void Sync() {
    data_ = own_.data();
    size_ = own_.size();
  }

  Vector own_;
  const T* data_ = nullptr;
  size_t size_ = 0;
};

// Of characters.
inline std::string_view TextOf(const StoredRows<char>& rows) { return {rows.data(), rows.size()}; }

}  // namespace portico::tokenizer
