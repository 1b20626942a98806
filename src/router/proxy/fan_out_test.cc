#include "router/proxy/fan_out.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "router/proxy/gateway_for_test.h"
#include "router/proxy/local_call.h"

namespace portico::router {
namespace {

// Holds what it is asked for until the test answers it.
class HeldControls final : public CalledWorkers {
 public:
  StatusOr<std::unique_ptr<net::HttpCall>> Start(const Worker&, net::Shard& shard,
                                                 net::HttpRequest request,
                                                 net::HttpCallEvents& events) override {
    const std::string path = request.path;
    LocalCall made = MakeLocalCall(shard, std::move(request), events, 1 << 20);
    held[path] = std::move(made.exchange);
    return std::move(made.call);
  }

  std::map<std::string, std::unique_ptr<net::Exchange>> held;  // the last one of each path
};

GatewayOptions WithoutLoads() {
  GatewayOptions options;
  options.load_interval = Duration::zero();
  options.health.timeout = std::chrono::minutes(10);  // what a stalled worker has for a control
  return options;
}

class FanOutTest : public testing::Test {
 protected:
  FanOutTest() {
    gateway_.gateway().UseTokens(&workers_);
    worker_ = gateway_.Add("grpc://127.0.0.1:9");
    worker_->SetHealth(Health::kHealthy);
  }
  ~FanOutTest() override {
    gateway_.Run([this] { workers_.held.clear(); });
  }
  void Send(const std::string& target, Duration timeout = std::chrono::minutes(10)) {
    gateway_.Run([&] {
      FanOut::Start(gateway_.on_shard(), {.method = "POST", .target = target, .timeout = timeout},
                    [this](std::vector<FanOutAnswer>) { ++ended_; });
    });
  }
  void Answer(const std::string& path, int status) {
    const int before = ended_;
    gateway_.Run([&] {
      net::HttpResponse response;
      response.status = status;
      response.body = "{}";
      ASSERT_NE(workers_.held[path], nullptr);
      workers_.held[path]->Respond(std::move(response));
    });
    AwaitEnd(before + 1);
  }
  void AwaitEnd(int count) {
    gateway_.WaitUntil([&] { return ended_ >= count; });
    EXPECT_EQ(ended_, count);
  }
  void Do(const std::string& target, int status = 200) {
    Send(target);
    Answer(target.substr(0, target.find('?')), status);
  }

  HeldControls workers_;
  std::atomic<int> ended_{0};
  GatewayOnShard gateway_{WithoutLoads()};
  WorkerPtr worker_;
};

TEST_F(FanOutTest, APauseThatIsResumedBeforeItsAnswerIsOver) {
  // vLLM's mode=wait answers after the last request: the worker was noted as paused when it had gone on.
  Send("/pause?mode=wait");
  EXPECT_TRUE(worker_->held_back());
  Do("/resume");
  Answer("/pause", 200);
  EXPECT_FALSE(worker_->held_back());
}

TEST_F(FanOutTest, APauseWhoseAnswerDoesNotComeInTimeCountsUntilTheWorkerIsToldToGoOn) {
  Send("/pause?mode=wait", std::chrono::milliseconds(1));
  AwaitEnd(1);
  EXPECT_TRUE(worker_->held_back());
  EXPECT_NE(worker_->pause_doubt().number, 0u);
  Do("/resume");
  EXPECT_FALSE(worker_->held_back());
  EXPECT_EQ(worker_->pause_doubt().number, 0u);
}

TEST_F(FanOutTest, ASecondPauseThatIsLostOrRefusedLeavesTheDoubtOfTheFirst) {
  Do("/pause", 502);
  Do("/pause", 502);
  EXPECT_NE(worker_->pause_doubt().number, 0u);
  Do("/pause", 400);
  EXPECT_NE(worker_->pause_doubt().number, 0u);
  Do("/pause");
  EXPECT_EQ(worker_->pause_doubt().number, 0u);
  EXPECT_TRUE(worker_->held_back());
}

TEST_F(FanOutTest, ARefusedPauseChangesNotHowTheOneBeforeItIsRead) {
  // SGLang has no /pause: it was then asked by vLLM's /is_paused, which it does not have either.
  Do("/pause_generation", 502);
  Do("/pause", 404);
  EXPECT_NE(worker_->pause_doubt().number, 0u);
  EXPECT_EQ(worker_->pause_doubt().reading, PauseReading::kInference);
  Do("/pause_generation");
  Do("/pause", 404);
  EXPECT_NE(worker_->sure_pause().number, 0u);
  EXPECT_EQ(worker_->sure_pause().reading, PauseReading::kInference);
}

TEST_F(FanOutTest, AnAnswerFromBeforeAControlDoesNotEndAPause) {
  // SGLang's /health_generate is answered by whatever comes from its scheduler, the answer to an update too.
  Do("/pause_generation");
  for (const int status : {200, 400, 502}) {
    const SurePause before = worker_->sure_pause();
    EXPECT_NE(before.number, 0u);
    Send("/update_weights_from_disk");
    EXPECT_EQ(worker_->sure_pause().number, 0u);
    EXPECT_FALSE(worker_->EndSurePause(before));
    Answer("/update_weights_from_disk", status);
    EXPECT_FALSE(worker_->EndSurePause(before));
  }
  Do("/begin_weight_update");
  EXPECT_EQ(worker_->sure_pause().number, 0u);
  Do("/end_weight_update");
  EXPECT_TRUE(worker_->EndSurePause(worker_->sure_pause()));
  EXPECT_FALSE(worker_->held_back());
}

TEST_F(FanOutTest, WhatAnUnhealthyWorkerRefusesIsLeftOut) {
  worker_->SetHealth(Health::kUnhealthy);
  size_t answers = 1;
  gateway_.Run([&] {
    FanOut::Start(gateway_.on_shard(),
                  {.method = "POST", .target = "/resume", .timeout = std::chrono::minutes(10)},
                  [&](std::vector<FanOutAnswer> all) {
                    answers = all.size();
                    ++ended_;
                  });
  });
  Answer("/resume", 503);
  EXPECT_EQ(answers, 0u);
}

TEST_F(FanOutTest, APauseThatHasBeenAnsweredIsInNoDoubt) {
  Do("/pause");
  Send("/pause?mode=wait", std::chrono::milliseconds(1));
  AwaitEnd(2);
  EXPECT_TRUE(worker_->held_back());
  EXPECT_EQ(worker_->pause_doubt().number, 0u);
}

TEST_F(FanOutTest, AControlThatMayBeDoneOrNotLeavesAPauseInDoubt) {
  // A server in between, or the engine, gives it up halfway: the pause was over, or counted for ever.
  for (const int status : {500, 502, 503, 504}) {
    Do("/pause_generation", status);
    EXPECT_TRUE(worker_->held_back()) << status;
    EXPECT_EQ(worker_->pause_doubt().reading, PauseReading::kInference);
    EXPECT_NE(worker_->pause_doubt().number, 0u);
    Do("/continue_generation");
    EXPECT_FALSE(worker_->held_back());
    Do("/pause");
    EXPECT_EQ(worker_->pause_doubt().number, 0u);
    Do("/resume", status);
    EXPECT_TRUE(worker_->held_back()) << status;
    EXPECT_EQ(worker_->pause_doubt().reading, PauseReading::kIsPaused);
    EXPECT_NE(worker_->pause_doubt().number, 0u);
    Do("/resume");
    EXPECT_FALSE(worker_->held_back());
  }
  Do("/pause");
  Do("/resume", 400);
  EXPECT_EQ(worker_->pause_doubt().number, 0u);
}

TEST_F(FanOutTest, AReadingOfTheWeightsHoldsNoEngineBack) {
  // What asked for the version every second kept a hanging engine from being noticed.
  Send("/weight_info");
  EXPECT_FALSE(worker_->held_back());
  Answer("/weight_info", 200);
  Send("/weight_checker");
  EXPECT_TRUE(worker_->held_back());
  Answer("/weight_checker", 200);
  EXPECT_FALSE(worker_->held_back());
}

TEST_F(FanOutTest, APauseThatIsRefusedIsNone) {
  for (const char* path : {"/pause", "/sleep", "/pause_generation"}) {
    for (const int status : {400, 404, 501}) {
      Do(path, status);
      EXPECT_FALSE(worker_->held_back()) << path;
    }
  }
  Do("/pause_generation");
  Do("/pause", 404);
  EXPECT_TRUE(worker_->held_back());  // the one before it goes on
  Do("/continue_generation", 500);
  EXPECT_TRUE(worker_->held_back());
  Do("/continue_generation");
  EXPECT_FALSE(worker_->held_back());
}

TEST_F(FanOutTest, AnUpdateOfWeightsHoldsTheEngineBackUntilItsEnd) {
  const std::vector<std::pair<std::string, std::string>> updates = {
      {"/begin_weight_update", "/end_weight_update"},
      {"/start_weight_update", "/finish_weight_update"},
      {"/start_draft_weight_update", "/finish_weight_update"}};
  for (const auto& [begin, end] : updates) {
    Do(begin, 500);
    EXPECT_FALSE(worker_->held_back()) << begin;
    Do(begin);
    EXPECT_TRUE(worker_->held_back()) << begin;
    Do("/update_weights", 500);
    EXPECT_TRUE(worker_->held_back()) << begin;
    Do(end, 500);  // nothing of it follows
    EXPECT_FALSE(worker_->held_back()) << end;
  }
  Send("/init_weight_transfer_engine");  // until the trainer has come
  EXPECT_TRUE(worker_->held_back());
  Answer("/init_weight_transfer_engine", 200);
  EXPECT_FALSE(worker_->held_back());
}

TEST_F(FanOutTest, AStalledOrUnhealthyWorkerGetsOnlyWhatEndsAPauseOrAnUpdate) {
  // SGLang's /health is not answered while its engine is paused: past the gateway, what made it go on was not sent to it.
  for (const Health health : {Health::kStalled, Health::kUnhealthy}) {
    worker_->SetHealth(health);
    for (const char* path : {"/start_weight_update", "/update_weights", "/is_paused"}) {
      const int before = ended_;
      Send(path);
      AwaitEnd(before + 1);
      EXPECT_EQ(workers_.held.count(path), 0u) << path;
    }
    for (const char* path : {"/resume", "/end_weight_update", "/finish_weight_update"}) Do(path);
  }
}

TEST_F(FanOutTest, AnEngineThatSleptIsPausedUntilAllItsMemoryIsAwake) {
  // The first of two wake-ups ended it, in the order that is not vLLM's own, or by the scheduler's tag.
  const std::vector<std::vector<std::string>> wake_ups = {
      {"/wake_up"},
      {"/wake_up?tags=weights&tags=kv_cache"},
      {"/wake_up?tags=weights", "/wake_up?tags=kv_cache"},
      {"/wake_up?tags=kv%5Fcache", "/wake_up?tags=scheduling", "/wake_up?tags=weights"}};
  for (const auto& targets : wake_ups) {
    Do("/sleep?level=1");
    for (const std::string& target : targets) {
      EXPECT_TRUE(worker_->held_back()) << target;
      Do(target);
    }
    EXPECT_FALSE(worker_->held_back()) << targets.back();
  }
  Do("/sleep?level=0");
  EXPECT_TRUE(worker_->held_back());
  Do("/wake_up?tags=scheduling");
  EXPECT_FALSE(worker_->held_back());
}

}  // namespace
}  // namespace portico::router
