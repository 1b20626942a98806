#include "service/plan/step_pace.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "service/plan/step_gate.h"

namespace portico {
namespace {

// For an item that takes less, as much is counted all the same.
constexpr uint32_t kAnyway = kMessageWork * kNanosecondsOfWork;

}  // namespace

size_t StepPace::WorkOf(size_t items, size_t least) const {
  if (items == 0) return 0;
  const size_t size = std::min<size_t>(std::bit_width(items) - 1, kSizes - 1);
  uint64_t pace = 0;
  for (size_t known = size + 1; known-- > kLeastSize;) {
    pace = pace_[known].load(std::memory_order_relaxed);
    if (pace == 0) continue;
    pace <<= size - known;
    break;
  }
  const size_t each = std::max<size_t>(least, pace / kNanosecondsOfWork);
  return each > kMostWork / items ? kMostWork : items * each;
}

void StepPace::Learn(const Step& step) {
  if (!Learns(step.items)) return;
  const size_t size = std::min<size_t>(std::bit_width(step.items) - 1, kSizes - 1);
  const int64_t total = std::chrono::duration_cast<std::chrono::nanoseconds>(step.took).count() -
                        static_cast<int64_t>(step.bytes * kNanosecondsOfWork);
  const auto seen = static_cast<uint32_t>(
      std::clamp<int64_t>(total / static_cast<int64_t>(step.items), 1, 1'000'000'000));
  std::atomic<uint32_t>& pace = pace_[size];
  const uint32_t known = pace.load(std::memory_order_relaxed);
  const uint32_t counted = std::max(known, kAnyway);
  if (!step.is_whole && seen <= counted) return;
  uint32_t learned = seen;
  if (known > 0) learned = seen > known ? std::min(seen, 2 * counted) : known - (known - seen) / 8;
  pace.store(learned, std::memory_order_relaxed);
}

}  // namespace portico
