#include "service/generation/stream_hub.h"

#include "base/events/recorder.h"
#include "base/prefetch.h"

namespace portico {

StreamReceiver* StreamHub::Find(StreamId stream) const {
  const auto it = receivers_.find(stream);
  return it == receivers_.end() ? nullptr : it->second;
}

void StreamHub::PrefetchAhead(const std::vector<TokenDelta>& batch, size_t i) const {
  for (int steps = 0; steps < kPrefetchSteps; ++steps) {
    const size_t ahead = i + kPrefetchGap * static_cast<size_t>(kPrefetchSteps - steps);
    if (ahead >= batch.size()) continue;
    const StreamReceiver* receiver = Find(batch[ahead].stream);
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
  Dispatch(&taken_);
  taken_.clear();
}

void StreamHub::Dispatch(std::vector<TokenDelta>* batch) {
  const TimePoint now = Clock::now();
  for (size_t i = 0; i < batch->size(); ++i) {
    PrefetchAhead(*batch, i);
    TokenDelta& delta = (*batch)[i];
    if (StreamReceiver* receiver = Find(delta.stream)) receiver->OnTokens(delta, now);
  }
  if (events::On() && !batch->empty()) {
    events::Record(events::Event::kDeliver, events::kNoKey, events::kFrontend,
                   {.a = static_cast<int64_t>(batch->size()), .b = (Clock::now() - now).count()});
  }
}

}  // namespace portico
