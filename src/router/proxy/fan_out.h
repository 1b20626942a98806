// A request that concerns every worker: sent to all at once, answered when all have answered.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/http/exchange.h"
#include "router/fleet/small_call.h"
#include "router/gateway.h"

namespace portico::router {

struct FanOutAnswer {
  std::string worker;  // its id
  StatusOr<SmallAnswer> answer;
};

class FanOut {
 public:
  using Done = absl::AnyInvocable<void(std::vector<FanOutAnswer>)>;

  // Sends `request` to all workers that are not known to be down, with each one's key, of a server's
  // ranks to one. What makes an engine go on is also sent to workers that are stalled or unhealthy, which have
  // health.timeout for it; one of them that does not answer 2xx is left out. `done` is called once on the shard, at the earliest
  // after this; at once if there are no workers. Holds itself until then.
  static void Start(GatewayShard& shard, SmallRequest request, Done done);

 private:
  FanOut(GatewayShard& shard, Done done) : shard_(shard), done_(std::move(done)) {}
  // `out`: its worker is stalled or unhealthy.
  void Take(size_t index, StatusOr<SmallAnswer> answer, bool out);
  std::vector<FanOutAnswer> Answers();

  GatewayShard& shard_;
  Done done_;
  WorkerSetPtr set_;
  size_t open_ = 0;
  std::vector<FanOutAnswer> answers_;
  std::vector<bool> left_out_;  // of these
  std::vector<std::unique_ptr<SmallCall>> calls_;
};

}  // namespace portico::router
