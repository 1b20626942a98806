// The texts of many tokens, in one block.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace portico {

// A list of strings that can only grow. A view from it is valid until it changes.
class TokenTexts {
 public:
  class Iterator {
   public:
    Iterator(const TokenTexts* texts, size_t at) : texts_(texts), at_(at) {}
    std::string_view operator*() const { return (*texts_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const TokenTexts* texts_;
    size_t at_;
  };

  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::string_view operator[](size_t i) const {
    size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }
  friend bool operator==(const TokenTexts&, const TokenTexts&) = default;

  void Add(std::string_view text) {
    bytes_.append(text);
    ends_.push_back(bytes_.size());
  }
  // Those of `from` in [begin, end).
  void Add(const TokenTexts& from, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) Add(from[i]);
  }
  // `count` texts of at most `bytes` bytes in all: `write(i, at)` writes the next one at `at` and returns its end.
  template <typename Write>
  void Add(size_t count, size_t bytes, Write write) {
    size_t size = bytes_.size();
    size_t texts = ends_.size();
    bytes_.resize(size + bytes);
    ends_.resize(texts + count);
    char* at = bytes_.data() + size;
    for (size_t i = 0; i < count; ++i) {
      at = write(i, at);
      ends_[texts + i] = static_cast<size_t>(at - bytes_.data());
    }
    bytes_.resize(static_cast<size_t>(at - bytes_.data()));
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

}  // namespace portico
