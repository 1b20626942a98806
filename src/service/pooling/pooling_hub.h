// Where engines deliver vectors and logits for one shard; what StreamHub is for tokens. A receiver has many
// texts with streams in a row, so that thousands of them cost it one entry.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "net/loop/shard.h"
#include "service/generation/delivery_queue.h"

namespace portico {

// The shard's side of the texts of one request.
class PoolingReceiver {
 public:
  virtual ~PoolingReceiver() = default;
  // On the shard. May move from `output`, remove and destroy this receiver and others.
  virtual void OnOutput(PoolingOutput& output, TimePoint now) = 0;
};

class PoolingHub final : public PoolingSink {
 public:
  explicit PoolingHub(net::Shard& shard) : on_(shard), queue_(shard, kMaxPending) {}

  // On the shard. What arrives for a stream without a receiver is dropped.
  void Add(StreamId first, uint64_t count, PoolingReceiver* receiver) {
    receivers_[first] = {count, receiver};
  }
  void Remove(StreamId first) { receivers_.erase(first); }
  size_t requests() const { return receivers_.size(); }

  ShardIndex shard() const override { return on_.index(); }
  // Any thread. Waits while kMaxPending outputs are undelivered.
  void Deliver(std::vector<PoolingOutput> batch) override {
    queue_.Deliver(std::move(batch), [this] { Drain(); });
  }

  // On the shard, in a turn of its own.
  void DeliverHere(std::vector<PoolingOutput> batch) override { Dispatch(&batch); }

  // Delivered and not yet handed on. Any thread.
  size_t pending() const { return queue_.pending(); }

  // Lets waiting deliverers go; from now on batches are dropped. Any thread.
  void Close() { queue_.Close(); }

 private:
  static constexpr size_t kMaxPending = 1 << 16;
  struct Entry {
    uint64_t count = 0;
    PoolingReceiver* receiver = nullptr;
  };

  PoolingReceiver* Find(StreamId stream) const;
  void Dispatch(std::vector<PoolingOutput>* batch);
  void Drain();

  net::Shard& on_;
  std::map<StreamId, Entry> receivers_;  // by their first stream; the shard's own
  DeliveryQueue<PoolingOutput> queue_;
  std::vector<PoolingOutput> taken_;  // Drain's, kept for its capacity
};

}  // namespace portico
