// Where engines deliver for one shard. An engine's thread appends a whole batch and wakes the shard at most once;
// the shard takes everything that has gathered and hands each delta to the stream's receiver.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/touched_objects.h"
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
};

class StreamHub final : public TokenSink {
 public:
  explicit StreamHub(net::Shard& shard) : on_(shard), queue_(shard, kMaxPending) {}

  net::Shard& net_shard() { return on_; }

  // On the shard. What arrives for a stream without a receiver is dropped.
  void Add(StreamId stream, StreamReceiver* receiver) { streams_[stream] = {receiver}; }
  void Remove(StreamId stream) { streams_.erase(stream); }
  size_t streams() const { return streams_.size(); }

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
  // A receiver is fetched eight deltas ahead, and what it touches (its sink, the exchange, the connection) six, four and
  // two ahead.
  static constexpr size_t kPrefetchSteps = 1 + TouchedObjects::kMost;
  static constexpr size_t kPrefetchGap = 2;
  static constexpr size_t kReceiverBytes = 256;
  // At most so many of its first deltas show what a receiver touches: many write nothing, as those of a call that is held
  // back until its name is complete.
  static constexpr int kLearntDeltas = 64;

  struct Stream {
    StreamReceiver* receiver = nullptr;
    TouchedObjects touched = {};
    int8_t learnt = 0;  // deltas
  };

  void PrefetchAhead(const std::vector<TokenDelta>& batch, size_t i) const;
  void HandOn(TokenDelta& delta, TimePoint now);
  void HandOnAndLearn(TokenDelta& delta, TimePoint now, Stream stream);
  void Dispatch(std::vector<TokenDelta>* batch);
  void Drain();

  net::Shard& on_;
  absl::flat_hash_map<StreamId, Stream> streams_;  // the shard's own
  DeliveryQueue<TokenDelta> queue_;
  std::vector<TokenDelta> taken_;  // Drain's, kept for its capacity
};

}  // namespace portico
