#include "router/local_fleet.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "router/policy/cost.h"

namespace portico::router {
namespace {

constexpr std::chrono::seconds kFleetTestTime{120};
constexpr size_t kTestBlock = 16;

// Publishes what it is told to, and keeps no request.
class CachingEngine final : public Engine, public KvEventSource {
 public:
  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest request, TokenSink* sink) override {
    ++requests;
    stream_ = request.stream;
    sink_ = sink;
    return OkStatus();
  }
  void Abort(StreamId, ShardIndex) override {}
  EngineLoad load() const override {
    EngineLoad load;
    load.healthy = healthy;
    return load;
  }
  void Stop() override {}
  KvEventHub* kv_events() override { return &hub; }

  // The last request ends.
  void End() {
    if (sink_ == nullptr) return;
    TokenDelta delta;
    delta.stream = stream_;
    delta.finish = FinishReason::kLength;
    std::vector<TokenDelta> batch;
    batch.push_back(std::move(delta));
    std::exchange(sink_, nullptr)->DeliverHere(std::move(batch));
  }
  void Store(const std::vector<TokenId>& tokens) {
    KvEventBatch batch;
    KvEvent& event = batch.events.emplace_back();
    event.kind = KvEvent::Kind::kStored;
    for (size_t i = 0; i + kTestBlock <= tokens.size(); i += kTestBlock) {
      const auto begin = tokens.begin() + static_cast<ptrdiff_t>(i);
      event.blocks.push_back(
          {.hash = int64_t{tokens[i]} + 1, .tokens = {begin, begin + kTestBlock}, .lora_id = {}});
    }
    hub.Publish(std::move(batch));
  }
  void Clear() {
    KvEventBatch batch;
    batch.events.emplace_back();
    hub.Publish(std::move(batch));
  }

  std::atomic<bool> healthy{true};
  int requests = 0;
  KvEventHub hub;

 private:
  EngineInfo info_;
  StreamId stream_ = 0;
  TokenSink* sink_ = nullptr;
};

class IgnoringSink final : public TokenSink {
 public:
  ShardIndex shard() const override { return 0; }
  void Deliver(std::vector<TokenDelta>) override {}
};

class LocalFleetTest : public testing::Test {
 protected:
  // Three engines; `before` is done to the last one before the fleet is made.
  void Make(const std::function<void(CachingEngine&)>& before) {
    std::vector<std::unique_ptr<Engine>> engines;
    for (int i = 0; i < 3; ++i) {
      auto engine = std::make_unique<CachingEngine>();
      caching_.push_back(engine.get());
      engines.push_back(std::move(engine));
    }
    before(last());
    auto made =
        LocalFleet::MakeEngine(std::move(engines), std::make_shared<Cost>(PolicyOptions()), 1);
    ASSERT_TRUE(made.ok()) << made.status();
    engine_ = *std::move(made);
  }
  ~LocalFleetTest() override {
    if (engine_ != nullptr) engine_->Stop();
  }
  CachingEngine& last() { return *caching_.back(); }
  static std::vector<TokenId> PromptOf(int number) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 4096; ++i) tokens.push_back(number * 10'000 + i);
    return tokens;
  }
  // Whether a request with the prompt goes to the last engine.
  bool GoesToLast(std::vector<TokenId> tokens) {
    const int before = last().requests;
    GenerateRequest request;
    request.stream = ++stream_;
    request.prompt = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
    request.sampling = std::make_shared<const SamplingParams>();
    EXPECT_TRUE(engine_->Submit(std::move(request), &sink_).ok());
    for (CachingEngine* engine : caching_) engine->End();
    return last().requests > before;
  }

  IgnoringSink sink_;
  std::vector<CachingEngine*> caching_;
  std::unique_ptr<Engine> engine_;
  StreamId stream_ = 0;
};

// Engines behind a policy published what they cached, and nobody told the policy.
TEST_F(LocalFleetTest, RequestsGoToTheEngineThatSaysItHasTheirPrompt) {
  Make([&](CachingEngine& engine) { engine.Store(PromptOf(0)); });
  EXPECT_TRUE(GoesToLast(PromptOf(0))) << "what it had before the fleet was made";
  for (int i = 1; i < 10; ++i) {
    last().Store(PromptOf(i));
    EXPECT_TRUE(GoesToLast(PromptOf(i))) << i;
  }
}

TEST_F(LocalFleetTest, AnEngineThatHasFailedIsToldOfAgainOnceItRuns) {
  Make([&](CachingEngine& engine) { engine.Store(PromptOf(0)); });
  const auto until = [&](const std::function<bool()>& is) {
    const TimePoint end = Clock::now() + kFleetTestTime;
    while (!is()) {
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  };
  last().healthy = false;
  EXPECT_TRUE(until([&] { return !GoesToLast(PromptOf(0)); }));
  last().Clear();  // as an engine that starts again
  last().healthy = true;
  int number = 10;
  const auto goes = [&] {
    last().Store(PromptOf(++number));
    return GoesToLast(PromptOf(number));
  };
  EXPECT_TRUE(until([&] { return goes() && goes() && goes() && goes(); }));
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(goes()) << i;
}

}  // namespace
}  // namespace portico::router
