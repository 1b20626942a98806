// A call that waits until a reader has caught up. Whoever buffers output for one keeps it, and tells it what is unsent
// after each send.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "net/loop/shard.h"

namespace portico::net {

// Everything on the shard. Destroying it drops the call; the call itself may do that.
class BelowCall {
 public:
  using Call = absl::AnyInvocable<void()>;

  // Made for a caller that has `unsent` bytes now. Null if `call` is.
  static std::unique_ptr<BelowCall> Make(Shard& shard, size_t bytes, size_t unsent, Call call);

  // So much is unsent now. `call` comes in a later turn, once.
  void OnSent(size_t unsent) {
    if (unsent <= bytes_ && soon_ == nullptr) CallSoon();
  }

 private:
  BelowCall(Shard& shard, size_t bytes, Call call)
      : shard_(shard), bytes_(bytes), call_(std::move(call)) {}
  void CallSoon();

  Shard& shard_;
  const size_t bytes_;
  Call call_;
  std::unique_ptr<Shard::Timer> soon_;  // kept after the call, so that there is no second one
};

}  // namespace portico::net
