// Texts to pool on their way through a RoutedEngine: a call goes to one worker, and is one of its requests in flight
// until the last of its texts has an answer. A worker that refuses it costs the client nothing; what one has taken is not
// tried again.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "router/policy/policy.h"
#include "router/routed_member.h"

namespace portico::router {

class RoutedPooling {
 public:
  // The member for a call that the workers of these numbers have refused. Errors as Engine::SubmitPooling.
  using Choose =
      std::function<StatusOr<RoutedMember>(std::span<const uint64_t> tried, const RoutingKey& key)>;

  // Sinks are of shards below `shards`.
  RoutedPooling(std::shared_ptr<Policy> policy, int shards, Choose choose);
  ~RoutedPooling();

  // As Engine's.
  Status Submit(std::vector<PoolingRequest> requests, PoolingSink* sink);
  void Abort(StreamId stream, ShardIndex shard);

 private:
  class Lane;

  Lane& LaneOf(ShardIndex shard);

  const std::shared_ptr<Policy> policy_;
  const Choose choose_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by shard; the last: of no shard
};

}  // namespace portico::router
