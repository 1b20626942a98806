#include "api/openai/audio/pipeline_feed.h"

#include <utility>

namespace portico::api::openai {
namespace {

constexpr size_t kUnsentBytes = 64 << 10;
constexpr auto kLookAgain = std::chrono::milliseconds(20);

}  // namespace

StatusOr<std::unique_ptr<PipelineFeed>> PipelineFeed::Start(pipeline::Pipeline& pipeline,
                                                            pipeline::Request request,
                                                            net::Shard& shard, Events events) {
  std::unique_ptr<PipelineFeed> feed(new PipelineFeed(shard, std::move(events)));
  auto wake = [alive = feed->alive_, &shard] {
    shard.Post([alive] {
      if (*alive != nullptr) (*alive)->Pump();
    });
  };
  PORTICO_ASSIGN_OR_RETURN(feed->call_, pipeline.Submit(std::move(request), std::move(wake)));
  return feed;
}

void PipelineFeed::Pump() {
  timer_.reset();
  if (call_ == nullptr) return;  // the end was taken before this wake-up came
  const std::shared_ptr<PipelineFeed*> alive = alive_;
  while (events_.unsent() < kUnsentBytes) {
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
  timer_ = shard_.After(kLookAgain, [this] { Pump(); });
}

}  // namespace portico::api::openai
