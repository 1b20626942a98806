// Learns which objects a call touches that is made again and again, so that they can be fetched before its next turn. The
// objects say so themselves, and the interfaces between caller and object need not know of it.
//
//   TouchedObjects touched;
//   {
//     const TouchRecording recording(&touched);
//     receiver->OnTokens(…);  // Connection::Write() and others call NoteTouched(this, sizeof(*this))
//   }
//   touched.Prefetch(0);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/prefetch.h"

namespace portico {

// In the order in which they were touched. They need not exist any more.
class TouchedObjects {
 public:
  static constexpr size_t kMost = 3;

  // Further ones than kMost are passed over, and so is one that is known.
  void Add(const void* object, size_t bytes) {
    const auto known = objects_.begin() + size_;
    if (size_ == kMost || std::find(objects_.begin(), known, object) != known) return;
    objects_[size_] = object;
    lines_[size_] =
        static_cast<uint8_t>(std::min<size_t>((bytes + kCacheLine - 1) / kCacheLine, kMaxLines));
    ++size_;
  }
  size_t size() const { return size_; }
  // Of object i, if there are so many.
  void Prefetch(size_t i) const {
    if (i < size_) PrefetchObject(objects_[i], lines_[i] * kCacheLine);
  }

 private:
  static constexpr size_t kMaxLines = 8;  // what a call needs is in the first ones

  std::array<const void*, kMost> objects_{};
  std::array<uint8_t, kMost> lines_{};
  uint8_t size_ = 0;
};

namespace internal {
inline constinit thread_local TouchedObjects* touch_recording = nullptr;
}  // namespace internal

// While it lives, what this thread touches is added to `into`.
class TouchRecording {
 public:
  explicit TouchRecording(TouchedObjects* into)
      : before_(std::exchange(internal::touch_recording, into)) {}
  ~TouchRecording() { internal::touch_recording = before_; }
  TouchRecording(const TouchRecording&) = delete;
  TouchRecording& operator=(const TouchRecording&) = delete;

 private:
  TouchedObjects* const before_;
};

// Costs a load and a branch where nothing records.
inline void NoteTouched(const void* object, size_t bytes) {
  if (internal::touch_recording != nullptr) internal::touch_recording->Add(object, bytes);
}

}  // namespace portico
