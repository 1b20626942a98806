// Where engines deliver for one shard. An engine's thread appends a whole batch and wakes the shard at most once;
// the shard takes everything that has gathered and hands each delta to the stream's receiver.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "net/loop/shard.h"
#include "service/generation/delivery_queue.h"

namespace portico {

// The shard's side of one engine stream.
class StreamReceiver {
 public:
  virtual ~StreamReceiver() = default;
  // On the shard. `now` is read once a batch. May move from `delta`, remove and destroy this receiver and others.
  virtual void OnTokens(TokenDelta& delta, TimePoint now) = 0;
  // Prefetches what OnTokens() will touch beside this object, `steps` pointers away (1: what this object points to).
  virtual void Prefetch(int /*steps*/) const {}
};

class StreamHub final : public TokenSink {
 public:
  explicit StreamHub(net::Shard& shard) : on_(shard), queue_(shard, kMaxPending) {}

  net::Shard& net_shard() { return on_; }

  // On the shard. What arrives for a stream without a receiver is dropped.
  void Add(StreamId stream, StreamReceiver* receiver) { receivers_[stream] = receiver; }
  void Remove(StreamId stream) { receivers_.erase(stream); }
  size_t streams() const { return receivers_.size(); }

  ShardIndex shard() const override { return on_.index(); }
  // Any thread. Waits while kMaxPending deltas are undelivered.
  void Deliver(std::vector<TokenDelta> batch) override {
    queue_.Deliver(std::move(batch), [this] { Drain(); });
  }

  // On the shard, in a turn of its own.
  void DeliverHere(std::vector<TokenDelta> batch) override { Dispatch(&batch); }

  // Delivered and not yet handed on. Any thread.
  size_t pending() const { return queue_.pending(); }

  // Lets waiting deliverers go; from now on batches are dropped. Any thread.
  void Close() { queue_.Close(); }

 private:
  static constexpr size_t kMaxPending = 1 << 20;
  // From a receiver to its connection's buffer it is four pointers. The first is prefetched so many deltas ahead, the
  // others two, four and six later.
  static constexpr int kPrefetchSteps = 4;
  static constexpr size_t kPrefetchGap = 2;
  static constexpr size_t kReceiverBytes = 256;

  StreamReceiver* Find(StreamId stream) const;
  void PrefetchAhead(const std::vector<TokenDelta>& batch, size_t i) const;
  void Dispatch(std::vector<TokenDelta>* batch);
  void Drain();

  net::Shard& on_;
  absl::flat_hash_map<StreamId, StreamReceiver*> receivers_;  // the shard's own
  DeliveryQueue<TokenDelta> queue_;
  std::vector<TokenDelta> taken_;  // Drain's, kept for its capacity
};

}  // namespace portico
