// A transport between its request and its answer.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Ends the wait of the call that has this serial, on its shard: takes its transport back, runs `go_on(transport)`, and gives the
// calls that this adds what was aborted meanwhile. Nothing, where the client has left.
template <typename Transport, typename GoOn>
void EndPlanning(ShardContext& shard, uint64_t serial, GoOn go_on) {
  Call* call = shard.calls.Find(serial);
  if (call == nullptr) return;
  auto& planning = static_cast<PlanningCall<Transport>&>(*call);
  const EarlyAborts aborts = planning.TakeAborts();
  std::unique_ptr<Transport> transport = planning.Take();
  shard.calls.Remove(call);
  const uint64_t before = shard.calls.last_serial();
  go_on(std::move(transport));
  shard.calls.AbortSince(before, aborts);
}

}  // namespace portico::api
