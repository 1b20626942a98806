#include "service/plan/step_pace.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "service/plan/step_gate.h"

namespace portico {

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
  return items * std::max<size_t>(least, pace / kNanosecondsOfWork);
}

void StepPace::Learn(size_t items, Duration took) {
  if (items < size_t{1} << kLeastSize) return;
  const size_t size = std::min<size_t>(std::bit_width(items) - 1, kSizes - 1);
  const auto total = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  const auto seen = static_cast<uint32_t>(
      std::clamp<int64_t>(total / static_cast<int64_t>(items), 1, 1'000'000'000));
  std::atomic<uint32_t>& pace = pace_[size];
  const uint32_t known = pace.load(std::memory_order_relaxed);
  uint32_t learned = seen;
  if (known > 0) learned = seen > known ? std::min(seen, 2 * known) : known - (known - seen) / 8;
  pace.store(learned, std::memory_order_relaxed);
}

}  // namespace portico
