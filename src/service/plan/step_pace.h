// What a template takes for a conversation, learned from those that it has rendered.
//
// Most templates take as long for the hundredth message as for the first, 0.2 us at the median of 256 real ones. Some look back
// at all messages before each: Mistral's and Gemma 4's take 1.5 us a message of 64 and 15 to 27 us a message of 512.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace portico {

// Thread safe.
class StepPace {
 public:
  struct Step {
    size_t items = 0;
    size_t bytes = 0;      // of text: what they take is counted apart, and is not the items'
    Duration took{0};      // of processor time
    bool is_whole = true;  // else it has ended early, and only tells that an item takes no less
  };

  // The work of a step with so many items, in the bytes of step_gate.h: at least `least` for each, and at most kMostWork. For
  // more items than any step has had, it is taken to grow with their square beyond what is known.
  size_t WorkOf(size_t items, size_t least) const;
  // The first step of its size is believed. After that one long step alone does not decide, since a cold cache or a page fault
  // counts too: what is known at most doubles, and comes down by an eighth of the difference.
  void Learn(const Step& step);
  // Steps of fewer items tell more of what a render takes anyway than of an item, and are not learned from.
  static bool Learns(size_t items) { return items >= size_t{1} << kLeastSize; }

  static constexpr size_t kMostWork =
      size_t{1} << 40;  // too long for a shard; a gate of the pool passes it many times

 private:
  // Nanoseconds an item, of 2^i to 2^(i+1)-1 items; 0: nothing is known.
  static constexpr size_t kSizes = 24;
  static constexpr size_t kLeastSize = 4;

  std::array<std::atomic<uint32_t>, kSizes> pace_{};
};

}  // namespace portico
