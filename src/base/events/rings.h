// The rings that threads record into. Used by recorder.cc and collector.cc only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/events/record.h"
#include "base/events/recorder.h"
#include "base/mutex.h"

namespace portico::events::internal {

// One thread writes, one reads.
struct Ring {
  static constexpr uint64_t kSize = 16384;

  alignas(64) std::atomic<uint64_t> head{0};  // written up to here
  std::atomic<bool> inside{false};            // its thread is in Record()
  std::atomic<uint64_t> dropped{0};
  alignas(64) std::atomic<uint64_t> tail{0};  // read up to here
  std::atomic<bool> left{false};              // its thread has ended
  alignas(64) std::array<Record32, kSize> records;

  Record32& At(uint64_t place) { return records[place % kSize]; }
  const Record32& At(uint64_t place) const { return records[place % kSize]; }
};

// All rings. A thread that ends leaves its ring to the next one.
class Rings {
 public:
  static constexpr size_t kMost = 512;  // 256 MB; events of further threads are dropped

  // This thread's ring, or null where there are too many. `mine` has it from then on.
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

inline constinit thread_local Ring* mine = nullptr;

// Who ends a run sets running_now to 0, calls AwaitOrder() and looks at `inside`; who records sets
// `inside` and looks at running_now. One of them must see the other. The system orders the stores
// and loads of all threads at the end, so that an event needs no fence; where it does not know how,
// the event has one.
inline std::atomic<bool> needs_fence{true};
void PrepareOrder();  // once, before the first run
void AwaitOrder();

}  // namespace portico::events::internal
