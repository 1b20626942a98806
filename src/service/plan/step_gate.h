// Asked before each step of a plan that may be long, with the work that the step is: whether it is to be done here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"

namespace portico {

// Work is counted in bytes of text that are tokenized, about 10 ns each: 5 to 20 ns by tokenizer (docs/text.md).
inline constexpr size_t kNanosecondsOfWork = 10;
inline constexpr size_t kShardWork = 128 << 10;  // of one plan: about a millisecond
inline constexpr size_t kPromptWork = 128;       // each prompt, beside its text
inline constexpr size_t kMessageWork =
    256;  // each message, part or tool that a template shows, at least

// Of one plan, on one thread at a time.
class StepGate {
 public:
  // On a shard, which other requests wait for.
  static StepGate OnShard() { return StepGate(kShardWork, std::nullopt); }
  // On the pool, until the client has left.
  static StepGate OnPool(std::weak_ptr<const void> wanted) {
    return StepGate(SIZE_MAX, std::move(wanted));
  }

  // CANCELLED where the step is not to be done here, and the plan ends.
  Status Pass(size_t work);
  // The plan is too long for this thread; made where there is no such bound, it may well be possible.
  bool too_long() const { return too_long_; }

 private:
  StepGate(size_t left, std::optional<std::weak_ptr<const void>> wanted)
      : left_(left), wanted_(std::move(wanted)) {}

  size_t left_;
  std::optional<std::weak_ptr<const void>> wanted_;
  bool too_long_ = false;
};

// Plans that nobody waits for pass without a gate.
inline Status PassGate(StepGate* gate, size_t work) {
  return gate == nullptr ? OkStatus() : gate->Pass(work);
}

}  // namespace portico
