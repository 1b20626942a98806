// A pipeline's call whose parts come on a shard: for connections that make several.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "net/loop/shard.h"
#include "net/websocket/web_socket.h"
#include "pipeline/coordinator/pipeline.h"

namespace portico::api::openai {

class PipelineFeed;

// The client of a WebSocket, for all feeds whose parts go there: while it has 64 KiB to read, none of them takes a part.
// On the socket's shard. The socket outlives it, and its CallWhenBelow() is used while a feed waits.
class FeedReader {
 public:
  explicit FeedReader(net::WebSocket& socket) : socket_(socket) {}
  ~FeedReader();
  FeedReader(const FeedReader&) = delete;
  FeedReader& operator=(const FeedReader&) = delete;

 private:
  friend class PipelineFeed;

  bool behind() const;
  void Await(PipelineFeed& feed);
  void Leave(PipelineFeed& feed);
  void AwaitClient();
  void OnRead();

  net::WebSocket& socket_;
  std::deque<PipelineFeed*> waiting_;
};

// On its shard. Destroying it aborts the work.
class PipelineFeed {
 public:
  struct Events {
    std::function<void(pipeline::Part)> on_part;
    // Once, at the end. Either may destroy the feed.
    std::function<void(const Status&)> on_done;
    // Where the parts go, which outlives the feed. Null: they are kept here, and taken as they come.
    FeedReader* reader = nullptr;
  };

  // Nothing is called from within this.
  static StatusOr<std::unique_ptr<PipelineFeed>> Start(pipeline::Pipeline& pipeline,
                                                       pipeline::Request request, net::Shard& shard,
                                                       Events events);
  ~PipelineFeed();
  PipelineFeed(const PipelineFeed&) = delete;
  PipelineFeed& operator=(const PipelineFeed&) = delete;

 private:
  friend class FeedReader;

  explicit PipelineFeed(Events events) : events_(std::move(events)) { *alive_ = this; }
  void Pump();

  Events events_;
  std::shared_ptr<PipelineFeed*> alive_ = std::make_shared<PipelineFeed*>(nullptr);
  std::unique_ptr<pipeline::Call> call_;  // null once its end was taken
  bool waits_ = false;                    // in the reader's list
};

}  // namespace portico::api::openai
