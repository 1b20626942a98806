#include "net/socket/below_call.h"

namespace portico::net {

std::unique_ptr<BelowCall> BelowCall::Make(Shard& shard, size_t bytes, size_t unsent, Call call) {
  if (call == nullptr) return nullptr;
  std::unique_ptr<BelowCall> made(new BelowCall(shard, bytes, std::move(call)));
  made->OnSent(unsent);
  return made;
}

// A turn of its own, not the end of this one: who writes as fast as a client reads would hold up the other connections
// of the shard.
void BelowCall::CallSoon() {
  soon_ = shard_.After(Duration::zero(), [this] {
    Call call = std::move(call_);
    call();  // may destroy this
  });
}

}  // namespace portico::net
