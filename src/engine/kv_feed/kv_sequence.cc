#include "engine/kv_feed/kv_sequence.h"

#include <utility>

namespace portico {

KvSequence::Step KvSequence::OnLive(uint64_t number) {
  const std::optional<uint64_t> before = std::exchange(live_, number);
  if (before && number <= *before) return Step::kRestart;
  if (!last_ || number == *last_ + 1) {
    last_ = number;
    return Step::kTake;
  }
  return number <= *last_ ? Step::kKnown : Step::kGap;
}

KvSequence::Step KvSequence::OnReplayed(uint64_t number) {
  if (last_ && number <= *last_) return Step::kKnown;
  if (last_ && number != *last_ + 1) return Step::kGap;
  last_ = number;
  return Step::kTake;
}

bool KvSequence::EndReplay() {
  if (!live_ || (last_ && *last_ >= *live_)) return true;
  last_ = live_;
  return false;
}

}  // namespace portico
