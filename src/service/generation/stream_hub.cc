#include "service/generation/stream_hub.h"

#include "base/events/recorder.h"
#include "base/prefetch.h"

namespace portico {

void StreamHub::PrefetchAhead(const std::vector<TokenDelta>& batch, size_t i) const {
  for (size_t step = 0; step < kPrefetchSteps; ++step) {
    const size_t ahead = i + kPrefetchGap * (kPrefetchSteps - step);
    if (ahead >= batch.size()) continue;
    const auto it = streams_.find(batch[ahead].stream);
    if (it == streams_.end()) continue;
    if (step == 0) {
      PrefetchObject(it->second.receiver, kReceiverBytes);
    } else {
      it->second.touched.Prefetch(step - 1);
    }
  }
}

void StreamHub::HandOn(TokenDelta& delta, TimePoint now) {
  const auto it = streams_.find(delta.stream);
  if (it == streams_.end()) return;
  const Stream& stream = it->second;
  if (stream.learnt < kLearntDeltas && stream.touched.size() < TouchedObjects::kMost) {
    return HandOnAndLearn(delta, now, stream);
  }
  stream.receiver->OnTokens(delta, now);
}

void StreamHub::HandOnAndLearn(TokenDelta& delta, TimePoint now, Stream stream) {
  const StreamId id = delta.stream;
  {
    const TouchRecording recording(&stream.touched);
    stream.receiver->OnTokens(delta, now);
  }
  ++stream.learnt;
  // Unless that was its end.
  const auto it = streams_.find(id);
  if (it != streams_.end() && it->second.receiver == stream.receiver) it->second = stream;
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
    HandOn((*batch)[i], now);
  }
  if (events::On() && !batch->empty()) {
    events::Record(events::Event::kDeliver, events::kNoKey, events::kFrontend,
                   {.a = static_cast<int64_t>(batch->size()), .b = (Clock::now() - now).count()});
  }
}

}  // namespace portico
