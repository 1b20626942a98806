#include "service/pooling_hub.h"

#include <iterator>

namespace portico {

PoolingReceiver* PoolingHub::Find(StreamId stream) const {
  const auto behind = receivers_.upper_bound(stream);
  if (behind == receivers_.begin()) return nullptr;
  const auto& [first, entry] = *std::prev(behind);
  return stream - first < entry.count ? entry.receiver : nullptr;
}

void PoolingHub::Drain() {
  queue_.Take(&taken_);
  const TimePoint now = Clock::now();
  for (PoolingOutput& output : taken_) {
    if (PoolingReceiver* receiver = Find(output.stream)) receiver->OnOutput(output, now);
  }
  taken_.clear();
}

}  // namespace portico
