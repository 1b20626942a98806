// What a step of an engine gives, gathered by the sink it goes to. Used by the engine's thread.
#pragma once

#include <utility>
#include <vector>

namespace portico {

template <typename Sink, typename Output>
class Outbox {
 public:
  // Linear: there is one sink a shard.
  void Add(Sink* to, Output output) {
    for (auto& [sink, batch] : batches_) {
      if (sink == to) return batch.push_back(std::move(output));
    }
    batches_.emplace_back(to, std::vector<Output>{}).second.push_back(std::move(output));
  }

  // One call a sink.
  void Deliver() {
    for (auto& [sink, batch] : batches_) sink->Deliver(std::move(batch));
    batches_.clear();
  }

 private:
  std::vector<std::pair<Sink*, std::vector<Output>>> batches_;
};

}  // namespace portico
