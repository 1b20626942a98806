#include "api/openai/audio/pipeline_feed.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/metrics.h"
#include "net/loop/run_on_shard_for_test.h"
#include "net/loop/test_server.h"

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

constexpr int kManyParts = 512;
constexpr size_t kPartText = 16 << 10;

// Says all of it at once.
class ManyRun final : public pipeline::StageRun {
 public:
  explicit ManyRun(std::shared_ptr<pipeline::StageOutput> output) : output_(std::move(output)) {}
  Status OnPart(pipeline::Part, std::string_view) override { return OkStatus(); }
  void OnInputEnd() override {
    for (int i = 0; i < kManyParts; ++i) {
      output_->Emit(pipeline::TextPart{std::string(kPartText, 't')});
    }
    output_->End(OkStatus());
  }

 private:
  const std::shared_ptr<pipeline::StageOutput> output_;
};

class ManyStage final : public pipeline::Stage {
 public:
  std::unique_ptr<pipeline::StageRun> Start(
      std::shared_ptr<const pipeline::Request>,
      std::shared_ptr<pipeline::StageOutput> output) override {
    return std::make_unique<ManyRun>(std::move(output));
  }
};

TEST(FeedReaderTest, FeedsOfOneSocketStopWhileItsClientDoesNotReadAndAllGoOnWhenItDoes) {
  pipeline::Pipeline::Kinds kinds;
  kinds["many"] = [](const pipeline::StageConfig&) -> StatusOr<std::unique_ptr<pipeline::Stage>> {
    return std::unique_ptr<pipeline::Stage>(std::make_unique<ManyStage>());
  };
  auto config = pipeline::ParsePipelineConfig(
      "name: p\nstages:\n  - {name: many, factory_path: many, terminal: true}\n", "p", {});
  ASSERT_TRUE(config.ok()) << config.status();
  Registry registry;
  auto pipeline = pipeline::Pipeline::Start(*std::move(config), kinds, "p", &registry);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();

  std::unique_ptr<net::WebSocket> socket;
  std::optional<FeedReader> reader;
  std::array<std::unique_ptr<PipelineFeed>, 2> feeds;
  std::atomic<int> taken{0};
  std::atomic<int> done{0};
  net::TestServer server([&](std::unique_ptr<net::Exchange> exchange) {
    net::Shard& shard = exchange->shard();
    socket = net::WebSocket::Accept(std::move(exchange), net::WsOptions());
    reader.emplace(*socket);
    for (size_t i = 0; i < feeds.size(); ++i) {
      pipeline::Request request;
      request.id = "r" + std::to_string(i);
      request.wants_text = true;
      PipelineFeed::Events events;
      events.on_part = [&](pipeline::Part part) {
        ++taken;
        socket->SendText(std::get<pipeline::TextPart>(part).text);
      };
      events.on_done = [&](const Status& status) {
        EXPECT_TRUE(status.ok()) << status;
        ++done;
      };
      events.reader = &*reader;
      auto started = PipelineFeed::Start(**pipeline, std::move(request), shard, std::move(events));
      ASSERT_TRUE(started.ok()) << started.status();
      feeds[i] = *std::move(started);
    }
  });
  net::TestClient client(server.port(), 4096);
  client.Send(
      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  client.ReadUntil("\r\n\r\n");
  int before = -1;
  net::TestServer::WaitFor([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const int last = std::exchange(before, taken.load());
    return last == before && last > 0;
  });
  EXPECT_LT(taken, 2 * kManyParts);
  server.OnShard([&] { EXPECT_LT(socket->unsent_bytes(), 512U << 10); });
  client.Read(2 * kManyParts * kPartText);
  net::TestServer::WaitFor([&] { return done == 2; });
  EXPECT_EQ(taken, 2 * kManyParts);
  server.OnShard([&] {
    feeds = {};
    reader.reset();
    socket.reset();
  });
}

}  // namespace
}  // namespace portico::api::openai
