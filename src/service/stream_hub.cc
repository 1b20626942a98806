#include "service/stream_hub.h"

#include "base/prefetch.h"

namespace portico {

StreamReceiver* StreamHub::Find(StreamId stream) const {
  const auto it = receivers_.find(stream);
  return it == receivers_.end() ? nullptr : it->second;
}

void StreamHub::PrefetchAhead(size_t i) const {
  for (int steps = 0; steps < kPrefetchSteps; ++steps) {
    const size_t ahead = i + kPrefetchGap * static_cast<size_t>(kPrefetchSteps - steps);
    if (ahead >= taken_.size()) continue;
    const StreamReceiver* receiver = Find(taken_[ahead].stream);
    if (receiver == nullptr) continue;
    if (steps == 0) {
      PrefetchObject(receiver, kReceiverBytes);
    } else {
      receiver->Prefetch(steps);
    }
  }
}

void StreamHub::Drain() {
  queue_.Take(&taken_);
  TimePoint now = Clock::now();
  for (size_t i = 0; i < taken_.size(); ++i) {
    PrefetchAhead(i);
    if (StreamReceiver* receiver = Find(taken_[i].stream)) receiver->OnTokens(taken_[i], now);
  }
  taken_.clear();
}

}  // namespace portico
