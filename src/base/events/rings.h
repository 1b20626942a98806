// The rings that threads record into. Used by recorder.cc and collector.cc only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/events/recorder.h"
#include "base/mutex.h"

namespace portico::events::internal {

// 64 bytes. Kinds from kName on are no events: `text` is a piece of a name, or the key to join.
struct Record64 {
  struct Numbers {
    int64_t nanoseconds;
    int64_t a;
    int64_t b;
  };

  Key key;
  uint16_t kind;
  uint16_t length;  // of text
  uint16_t more;    // pieces of this text that follow
  Label stage;
  Label peer;
  Label tag;
  union {
    Numbers numbers;
    char text[40];
    Key joined;
  };
};
static_assert(sizeof(Record64) == 64);

inline constexpr uint16_t kName = 0xFFF0;
inline constexpr uint16_t kJoin = 0xFFF1;
inline constexpr uint16_t kLeaveOut = 0xFFF2;

// One thread writes, one reads.
struct Ring {
  static constexpr uint64_t kSize = 8192;

  alignas(64) std::atomic<uint64_t> head{0};  // written up to here
  std::atomic<bool> inside{false};            // its thread is in Record()
  std::atomic<uint64_t> dropped{0};
  alignas(64) std::atomic<uint64_t> tail{0};  // read up to here
  std::atomic<bool> left{false};              // its thread has ended
  std::array<Record64, kSize> records;
};

// All rings. A thread that ends leaves its ring to the next one.
class Rings {
 public:
  static constexpr size_t kMost = 512;  // 256 MB; events of further threads are dropped

  // This thread's ring, or null where there are too many.
  Ring* Mine();
  // Those there are now.
  std::vector<Ring*> All();
  // Of the reader, when it has read all: the ring is free for another thread if its own has ended.
  void Recycle(Ring* ring);

  std::atomic<uint64_t> homeless{0};  // events that had no ring

 private:
  Ring* Take();

  Mutex mutex_;
  std::vector<std::unique_ptr<Ring>> rings_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ring*> free_ ABSL_GUARDED_BY(mutex_);
};

Rings& AllRings();

}  // namespace portico::events::internal
