#include "service/pooling/pooling_hub.h"

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
  Dispatch(&taken_);
  taken_.clear();
}

void PoolingHub::Dispatch(std::vector<PoolingOutput>* batch) {
  const TimePoint now = Clock::now();
  for (PoolingOutput& output : *batch) {
    if (PoolingReceiver* receiver = Find(output.stream)) receiver->OnOutput(output, now);
  }
}

}  // namespace portico
