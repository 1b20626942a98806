#include "message/generate.h"

#include <atomic>

namespace portico {

StreamId NextStreamId() { return NextStreamIds(1); }

StreamId NextStreamIds(uint64_t count) {
  static std::atomic<StreamId> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);
}

SamplingParams& OwnSampling(GenerateRequest* request) {
  auto own = request->sampling ? std::make_shared<SamplingParams>(*request->sampling)
                               : std::make_shared<SamplingParams>();
  request->sampling = own;
  return *own;
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

}  // namespace portico
