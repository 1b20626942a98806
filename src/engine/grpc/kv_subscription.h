// A worker's SubscribeKvEvents, begun again whenever it ends, so that its reader always follows the worker's cache or knows
// that it does not.
//
// It begins with the present state. A batch that is missing is asked for again; where the worker has it no more, and when
// the connection was lost (the worker may be another process), the state comes anew. A server that cannot tell its state
// tells what happens from then on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "message/kv_events.h"
#include "net/grpc/grpc_channel.h"
#include "net/loop/shard.h"

namespace portico {

// `batch`: what has happened; null: about once a second, for the wish alone. `reset`: nothing that was told before counts
// any more. On the shard; returns soon, and calls nothing of the subscription.
using KvListener = std::function<KvWish(const KvEventBatch* batch, bool reset)>;

// Lives on the channel's shard.
class KvSubscription final : private net::GrpcCallEvents {
 public:
  // `options`: of each call.
  KvSubscription(net::Shard& shard, net::GrpcChannel& channel, net::GrpcCallOptions options,
                 KvListener listener);
  ~KvSubscription() override;

 private:
  void Look();
  void Subscribe(uint64_t from);
  void SubscribeLater(Duration pause);
  // Ends the call and follows the wish.
  void Follow(KvWish wish);

  void OnHead(net::Headers metadata) override;
  void OnMessage(std::string_view message) override;
  void OnEnd(Status status, net::Headers trailers) override;

  net::Shard& shard_;
  net::GrpcChannel& channel_;
  const net::GrpcCallOptions options_;
  const KvListener listener_;
  std::unique_ptr<net::GrpcClientCall> call_;
  std::unique_ptr<net::Shard::Timer> look_;
  std::unique_ptr<net::Shard::Timer> later_;
  Duration pause_{};
  uint64_t last_ = 0;      // the number of the last batch
  uint64_t asked_ = 0;     // from which on: 0, the state
  bool reset_due_ = true;  // with the next that is told
};

}  // namespace portico
