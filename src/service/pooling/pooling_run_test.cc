#include "service/pooling/pooling_run.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>

#include "engine/mock/mock_engine.h"
#include "net/loop/run_on_shard_for_test.h"
#include "service/model_registry.h"

namespace portico {
namespace {

// Told once; keeps what it was told.
class Recorder final : public PoolingRunSink {
 public:
  void OnPooled(StatusOr<PoolingResult> result) override {
    EXPECT_FALSE(result_.has_value());
    result_ = std::move(result);
    done_.set_value();
  }
  const StatusOr<PoolingResult>& Wait() {
    done_.get_future().wait();
    return *result_;
  }

 private:
  std::optional<StatusOr<PoolingResult>> result_;
  std::promise<void> done_;
};

class PoolingRunTest : public testing::Test {
 protected:
  PoolingRunTest() : metrics_(registry_, models_, {"tiny"}), shard_(0), hub_(shard_) {
    model_.id = "tiny";
    shard_.Start();
  }
  ~PoolingRunTest() override {
    OnShard([this] { run_.reset(); });
    model_.engine->Stop();
    hub_.Close();
    shard_.Stop();
  }

  void MakeEngine(double ttft_ms, MockFaultRates faults = {}) {
    MockEngineOptions options;
    options.vocab_size = 100;
    options.context_length = 100;
    options.task = ModelTask::kEmbed;
    options.ttft_ms = ttft_ms;
    options.faults = faults;
    options.max_running_requests = 1;
    options.max_queued_requests = 1;
    model_.engine = NewMockEngine(options);
  }

  void OnShard(const std::function<void()>& task) { net::RunOnShard(shard_, task); }

  static PoolingPlan PlanOf(size_t texts) {
    PoolingPlan plan;
    for (size_t i = 0; i < texts; ++i) {
      auto ids =
          std::make_shared<const std::vector<TokenId>>(i % 7 + 1, static_cast<TokenId>(i % 100));
      plan.texts.emplace_back().tokens = std::move(ids);
    }
    return plan;
  }

  Status Start(PoolingPlan plan) {
    Status status;
    OnShard([&] {
      auto run = PoolingRun::Start(model_, hub_, metrics_, std::move(plan), &sink_);
      status = run.status();
      if (run.ok()) run_ = *std::move(run);
    });
    return status;
  }

  ServingModel model_;
  ModelRegistry models_;
  Registry registry_;
  ServiceMetrics metrics_;
  net::Shard shard_;
  PoolingHub hub_;
  Recorder sink_;
  std::unique_ptr<PoolingRun> run_;
};

TEST_F(PoolingRunTest, OutputsComeInTheOrderOfTheTexts) {
  MakeEngine(0);
  ASSERT_TRUE(Start(PlanOf(1000)).ok());
  const auto& result = sink_.Wait();
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->outputs.size(), 1000u);
  int64_t tokens = 0;
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(result->outputs[i].prompt_tokens, static_cast<int32_t>(i % 7 + 1));
    tokens += result->outputs[i].prompt_tokens;
  }
  EXPECT_EQ(result->prompt_tokens, tokens);
  EXPECT_EQ(metrics_.Of(model_).stopped.Value(), 1000u);
  OnShard([this] { EXPECT_EQ(hub_.requests(), 0u); });
}

TEST_F(PoolingRunTest, AnAbortEndsEveryText) {
  MakeEngine(1e9);
  ASSERT_TRUE(Start(PlanOf(10)).ok());
  OnShard([this] { run_->Abort(); });
  EXPECT_EQ(sink_.Wait().status().code(), StatusCode::kAborted);
  EXPECT_EQ(metrics_.Of(model_).aborted.Value(), 10u);
}

TEST_F(PoolingRunTest, DestroyingItAbortsAndTellsNobody) {
  MakeEngine(1e9);
  ASSERT_TRUE(Start(PlanOf(10)).ok());
  OnShard([this] { run_.reset(); });
  EXPECT_EQ(metrics_.Of(model_).aborted.Value(), 10u);
  while (model_.engine->load().running + model_.engine->load().waiting > 0) {
  }
}

TEST_F(PoolingRunTest, ATextThatFailsEndsTheOthers) {
  MockFaultRates faults;
  faults.error = 0.2;
  faults.stall = 0.5;
  MakeEngine(0, faults);
  ASSERT_TRUE(Start(PlanOf(50)).ok());
  EXPECT_EQ(sink_.Wait().status().code(), StatusCode::kInternal);
  EXPECT_GT(metrics_.Of(model_).failed.Value(), 0u);
}

// The label that a worker had left out was read behind the end of its values.
TEST_F(PoolingRunTest, ATextWithFewerValuesThanItIsJudgedByFails) {
  MakeEngine(0);
  PoolingPlan plan = PlanOf(2);
  plan.least_values = static_cast<size_t>(model_.engine->info().embedding_size) + 1;
  ASSERT_TRUE(Start(std::move(plan)).ok());
  EXPECT_EQ(sink_.Wait().status().code(), StatusCode::kInternal);
}

TEST_F(PoolingRunTest, AFullQueueRefusesAllTexts) {
  MakeEngine(1e9);
  std::vector<std::unique_ptr<PoolingRun>> others(2);
  OnShard([&] {
    for (auto& other : others) {
      other = *PoolingRun::Start(model_, hub_, metrics_, PlanOf(3), &sink_);
    }
  });
  EXPECT_EQ(Start(PlanOf(3)).code(), StatusCode::kResourceExhausted);
  OnShard([&] {
    EXPECT_EQ(hub_.requests(), 2u);
    others.clear();
  });
}

TEST_F(PoolingRunTest, RidsAreTakenTogetherOrNotAtAll) {
  ActiveRids rids;
  PoolingPlan plan = PlanOf(2);
  plan.rids = {"a", "b"};
  auto held = rids.Take("b");
  EXPECT_EQ(TakeRids(rids, &plan).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(rids.Take("a").ok());
  held->Release();
  EXPECT_TRUE(TakeRids(rids, &plan).ok());
  EXPECT_FALSE(rids.Take("a").ok());
  MakeEngine(1e9);
  ASSERT_TRUE(Start(std::move(plan)).ok());
  OnShard([this] {
    EXPECT_TRUE(run_->HasRid("b"));
    EXPECT_FALSE(run_->HasRid("c"));
    run_->Abort();
  });
  EXPECT_EQ(sink_.Wait().status().code(), StatusCode::kAborted);
  EXPECT_TRUE(rids.Take("a").ok());
}

}  // namespace
}  // namespace portico
