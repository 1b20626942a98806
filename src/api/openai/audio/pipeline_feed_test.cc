#include "api/openai/audio/pipeline_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics.h"
#include "net/loop/run_on_shard_for_test.h"

namespace portico::api::openai {
namespace {

// Ends while its first part is being read.
class EarlyRun final : public pipeline::StageRun {
 public:
  EarlyRun(std::shared_ptr<pipeline::StageOutput> output, std::atomic<bool>& read,
           std::atomic<bool>& ended)
      : output_(std::move(output)), read_(read), ended_(ended) {}
  Status OnPart(pipeline::Part, std::string_view) override { return OkStatus(); }
  void OnInputEnd() override {
    output_->Emit(pipeline::TextPart{"one"});
    read_.wait(false);
    output_->End(OkStatus());
    ended_ = true;
    ended_.notify_all();
  }

 private:
  const std::shared_ptr<pipeline::StageOutput> output_;
  std::atomic<bool>& read_;
  std::atomic<bool>& ended_;
};

class EarlyStage final : public pipeline::Stage {
 public:
  EarlyStage(std::atomic<bool>& read, std::atomic<bool>& ended) : read_(read), ended_(ended) {}
  std::unique_ptr<pipeline::StageRun> Start(
      std::shared_ptr<const pipeline::Request>,
      std::shared_ptr<pipeline::StageOutput> output) override {
    return std::make_unique<EarlyRun>(std::move(output), read_, ended_);
  }

 private:
  std::atomic<bool>& read_;
  std::atomic<bool>& ended_;
};

TEST(PipelineFeedTest, AnEndThatIsTakenBeforeItsWakeUpComesIsReportedOnce) {
  std::atomic<bool> read{false};
  std::atomic<bool> ended{false};
  pipeline::Pipeline::Kinds kinds;
  kinds["early"] = [&](const pipeline::StageConfig&) -> StatusOr<std::unique_ptr<pipeline::Stage>> {
    return std::unique_ptr<pipeline::Stage>(std::make_unique<EarlyStage>(read, ended));
  };
  auto config = pipeline::ParsePipelineConfig(
      "name: p\nstages:\n  - {name: early, factory_path: early, terminal: true}\n", "p", {});
  ASSERT_TRUE(config.ok()) << config.status();
  Registry registry;
  auto pipeline = pipeline::Pipeline::Start(*std::move(config), kinds, "p", &registry);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  net::Shard shard(0);
  shard.Start();

  std::unique_ptr<PipelineFeed> feed;
  std::string text;
  std::atomic<int> done{0};
  net::RunOnShard(shard, [&] {
    pipeline::Request request;
    request.id = "r";
    request.wants_text = true;
    PipelineFeed::Events events;
    events.on_part = [&](pipeline::Part part) {
      text += std::get<pipeline::TextPart>(part).text;
      read = true;
      read.notify_all();
      ended.wait(false);  // its wake-up is posted, and waits behind this call
    };
    events.on_done = [&](const Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      ++done;
      done.notify_all();
    };
    events.unsent = [] { return size_t{0}; };
    auto started = PipelineFeed::Start(**pipeline, std::move(request), shard, std::move(events));
    ASSERT_TRUE(started.ok()) << started.status();
    feed = *std::move(started);
  });
  ASSERT_NE(feed, nullptr);
  done.wait(0);
  net::RunOnShard(shard, [&] { feed.reset(); });  // behind the wake-up
  EXPECT_EQ(text, "one");
  EXPECT_EQ(done, 1);
  shard.Stop();
}

}  // namespace
}  // namespace portico::api::openai
