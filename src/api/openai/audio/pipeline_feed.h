// A pipeline's call whose parts come on a shard: for connections that make several.
#pragma once

#include <functional>
#include <memory>

#include "net/loop/shard.h"
#include "pipeline/pipeline.h"

namespace portico::api::openai {

// On its shard. Destroying it aborts the work.
class PipelineFeed {
 public:
  struct Events {
    std::function<void(pipeline::Part)> on_part;
    // Once, at the end. Either may destroy the feed.
    std::function<void(const Status&)> on_done;
    // Bytes that wait for the client: above 64 KiB no part is taken.
    std::function<size_t()> unsent;
  };

  // Nothing is called from within this.
  static StatusOr<std::unique_ptr<PipelineFeed>> Start(pipeline::Pipeline& pipeline,
                                                       pipeline::Request request, net::Shard& shard,
                                                       Events events);
  ~PipelineFeed() { *alive_ = nullptr; }
  PipelineFeed(const PipelineFeed&) = delete;
  PipelineFeed& operator=(const PipelineFeed&) = delete;

 private:
  PipelineFeed(net::Shard& shard, Events events) : shard_(shard), events_(std::move(events)) {
    *alive_ = this;
  }
  void Pump();

  net::Shard& shard_;
  Events events_;
  std::shared_ptr<PipelineFeed*> alive_ = std::make_shared<PipelineFeed*>(nullptr);
  std::unique_ptr<pipeline::Call> call_;  // null once its end was taken
  std::unique_ptr<net::Shard::Timer> timer_;
};

}  // namespace portico::api::openai
