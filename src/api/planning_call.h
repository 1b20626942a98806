// A transport between its request and its answer.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "api/call.h"
#include "api/context.h"

namespace portico::api {

// Holds an exchange or a gRPC call while its request is planned elsewhere. A client that leaves meanwhile
// takes it along.
template <typename Transport>
class PlanningCall final : public Call {
 public:
  PlanningCall(std::unique_ptr<Transport> transport, ShardContext& shard)
      : transport_(std::move(transport)) {
    transport_->set_on_closed([this, &shard](auto&&...) { shard.calls.Remove(this); });
  }
  // Its rid is read by the plan; what is aborted meanwhile is kept until the call is there.
  void Abort() override { aborts_.all = true; }
  void AbortRid(std::string_view name) override {
    if (aborts_.rids.size() < kMaxAborts) aborts_.rids.emplace_back(name);
  }
  // Work that ends with this.
  void Keep(std::shared_ptr<void> work) { work_ = std::move(work); }
  EarlyAborts TakeAborts() { return std::move(aborts_); }
  std::unique_ptr<Transport> Take() {
    transport_->set_on_closed(nullptr);
    return std::move(transport_);
  }

 private:
  // Of 256 bytes each at most. Beyond it an abort is lost, as one that comes before its request.
  static constexpr size_t kMaxAborts = 4096;

  std::unique_ptr<Transport> transport_;
  EarlyAborts aborts_;
  std::shared_ptr<void> work_;
};

}  // namespace portico::api
