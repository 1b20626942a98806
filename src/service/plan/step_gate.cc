#include "service/plan/step_gate.h"

namespace portico {

Status StepGate::Pass(size_t work) {
  if (wanted_ && wanted_->expired()) {
    return Error(StatusCode::kCancelled, "the client has left");
  }
  too_long_ = too_long_ || work > left_;
  if (too_long_) return Error(StatusCode::kCancelled, "too long for this thread");
  left_ -= work;
  return OkStatus();
}

}  // namespace portico
