#include "api/openai/audio/pipeline_feed.h"

#include <utility>

namespace portico::api::openai {
namespace {

// What may wait for a client, and what it has left when it is given more.
constexpr size_t kMostUnread = 64 << 10;
constexpr size_t kFewUnread = 32 << 10;

}  // namespace

FeedReader::~FeedReader() {
  for (PipelineFeed* feed : waiting_) feed->waits_ = false;
}

bool FeedReader::behind() const { return socket_.unsent_bytes() >= kMostUnread; }

void FeedReader::Await(PipelineFeed& feed) {
  if (std::exchange(feed.waits_, true)) return;
  waiting_.push_back(&feed);
  if (waiting_.size() == 1) AwaitClient();
}

void FeedReader::Leave(PipelineFeed& feed) { std::erase(waiting_, &feed); }

void FeedReader::AwaitClient() {
  socket_.CallWhenBelow(kFewUnread, [this] { OnRead(); });
}

// In turns: who makes the client fall behind again waits behind the others.
void FeedReader::OnRead() {
  while (!waiting_.empty() && !behind()) {
    PipelineFeed& feed = *waiting_.front();
    waiting_.pop_front();
    feed.waits_ = false;
    feed.Pump();
  }
  if (!waiting_.empty()) AwaitClient();
}

PipelineFeed::~PipelineFeed() {
  *alive_ = nullptr;
  if (waits_) events_.reader->Leave(*this);
}

StatusOr<std::unique_ptr<PipelineFeed>> PipelineFeed::Start(pipeline::Pipeline& pipeline,
                                                            pipeline::Request request,
                                                            net::Shard& shard, Events events) {
  std::unique_ptr<PipelineFeed> feed(new PipelineFeed(std::move(events)));
  auto wake = [alive = feed->alive_, &shard] {
    shard.Post([alive] {
      if (*alive != nullptr) (*alive)->Pump();
    });
  };
  PORTICO_ASSIGN_OR_RETURN(feed->call_, pipeline.Submit(std::move(request), std::move(wake)));
  return feed;
}

void PipelineFeed::Pump() {
  if (call_ == nullptr) return;  // the end was taken before this wake-up came
  const std::shared_ptr<PipelineFeed*> alive = alive_;
  while (events_.reader == nullptr || !events_.reader->behind()) {
    pipeline::Call::Taken taken = call_->Take(/*max_parts=*/16);
    for (pipeline::Part& part : taken.parts) {
      events_.on_part(std::move(part));
      if (*alive == nullptr) return;
    }
    if (taken.ended) {
      call_.reset();
      const auto on_done = std::move(events_.on_done);
      return on_done(taken.status);
    }
    if (taken.parts.empty()) return;
  }
  events_.reader->Await(*this);
}

}  // namespace portico::api::openai
