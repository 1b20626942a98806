// Bytes that several stages read without a copy: of this process's heap, or of a sealed memfd that
// any process of this machine can map.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::pipeline {

// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Close(); }
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = other.Release();
    }
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void Close();

 private:
  int fd_ = -1;
};

// Immutable. Thread safe.
class Blob {
 public:
  // On the heap.
  static std::shared_ptr<const Blob> Own(std::string bytes);
  // Copies the bytes into a sealed memfd. UNAVAILABLE: no memory or no file descriptor is left.
  static StatusOr<std::shared_ptr<const Blob>> Share(std::string_view bytes);
  // Maps a memfd of another process. INVALID_ARGUMENT unless it is sealed against every change, for
  // else its owner could end this process by making it shorter.
  static StatusOr<std::shared_ptr<const Blob>> Map(Fd fd);
  ~Blob();
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;

  std::string_view bytes() const {
    return mapped_ == nullptr ? std::string_view(heap_)
                              : std::string_view(static_cast<const char*>(mapped_), size_);
  }
  // -1 if it is on the heap.
  int fd() const { return fd_.get(); }

 private:
  Blob() = default;

  std::string heap_;
  Fd fd_;
  void* mapped_ = nullptr;
  size_t size_ = 0;
};

}  // namespace portico::pipeline
