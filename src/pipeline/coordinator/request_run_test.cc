// How long a part may wait for a stage with a process, by a clock of the test.
#include "pipeline/coordinator/request_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/parts_in_process.h"

namespace portico::pipeline {
namespace {

using namespace std::chrono_literals;

// A stage whose process does nothing until the test says so.
class RemoteStage final : public Stage {
 public:
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    class RemoteRun final : public StageRun {
     public:
      explicit RemoteRun(std::promise<void>* given) : given_(*given) {}
      Status OnPart(Part, std::string_view) override { return OkStatus(); }
      void OnInputEnd() override { given_.set_value(); }

     private:
      std::promise<void>& given_;
    };
    output_ = std::move(output);
    return std::make_unique<RemoteRun>(&given_);
  }
  // Of the only run, once all of its parts have been sent to its process.
  PartsInProcess* WaitForParts() {
    if (given_.get_future().wait_for(60s) != std::future_status::ready) return nullptr;
    return dynamic_cast<PartsInProcess*>(output_.get());
  }

 private:
  std::promise<void> given_;
  std::shared_ptr<StageOutput> output_;
};

class HopClockTest : public testing::Test {
 protected:
  static constexpr auto kHopTimeout = 1h;

  void SetUp() override {
    StageConfig stage;
    stage.name = "a";
    stage.process = "p";
    stage.terminal = true;
    stage.hop_timeout_s = std::chrono::duration<double>(kHopTimeout).count();
    config_.entry_stage = "a";
    config_.stages.push_back(std::move(stage));
    auto remote = std::make_unique<RemoteStage>();
    RemoteStage& made = *remote;
    hosts_.push_back(
        std::make_unique<StageHost>(config_.stages.front(), std::move(remote), &pool_, &registry_));
    hosts_.front()->AddHop(StageHost::kClientName, &registry_);

    auto request = std::make_shared<Request>();
    request->inputs.assign(3, TextPart{"x"});
    run_ = std::make_shared<RequestRun>(
        std::move(request), Clock::now(), /*timeout_s=*/1e6, [] {},
        std::make_shared<std::atomic<size_t>>(0), &audio_);
    ASSERT_TRUE(run_->Build(config_, hosts_, /*before=*/nullptr).ok());
    run_->Start();
    parts_ = made.WaitForParts();
    ASSERT_NE(parts_, nullptr);
  }
  void TearDown() override { run_->Fail(Error(StatusCode::kCancelled, "")); }

  // A time behind all that has happened.
  static TimePoint Later() {
    std::this_thread::sleep_for(1ms);
    return Clock::now();
  }
  bool IsOverAt(TimePoint now) {
    run_->CheckTime(now);
    return run_->over();
  }

  Registry registry_;
  PipelineConfig config_;
  AudioMetrics audio_{&registry_, "speech"};
  std::vector<std::unique_ptr<StageHost>> hosts_;
  CpuPool pool_{1, 64, "test"};  // ends before the hosts: its tasks use them
  std::shared_ptr<RequestRun> run_;
  PartsInProcess* parts_ = nullptr;
};

TEST_F(HopClockTest, RunsForThePartBehindTheOneThatIsWorkedOn) {
  const TimePoint begun = Later();
  parts_->Worked(/*again=*/false);  // the second is begun, and the third waits
  EXPECT_FALSE(IsOverAt(begun + kHopTimeout));
  EXPECT_TRUE(IsOverAt(Later() + kHopTimeout));
  const auto taken = run_->Take(1, /*fresh=*/false);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(MessageOf(taken->status)),
              testing::HasSubstr("what the client has sent waits for stage `a`"));
}

TEST_F(HopClockTest, StopsWithTheLastPart) {
  parts_->Worked(/*again=*/false);
  parts_->Worked(/*again=*/false);
  EXPECT_FALSE(IsOverAt(Later() + 2 * kHopTimeout));
}

// A process that had died and worked through the same parts once more was no progress: the parts behind those ended the request.
TEST_F(HopClockTest, BeginsAnewWithEachPartThatIsWorkedOnAgain) {
  parts_->Worked(/*again=*/false);
  const TimePoint begun = Later();
  parts_->Worked(/*again=*/true);
  EXPECT_FALSE(IsOverAt(begun + kHopTimeout));
  EXPECT_TRUE(IsOverAt(Later() + kHopTimeout));
}

TEST_F(HopClockTest, GoesOnAfterPartsThatAreWorkedOnAgain) {
  parts_->Worked(/*again=*/false);
  parts_->Worked(/*again=*/true);
  const TimePoint begun = Later();
  parts_->Worked(/*again=*/false);  // the third is begun
  EXPECT_FALSE(IsOverAt(begun + 2 * kHopTimeout));
  EXPECT_EQ(hosts_.front()->HopFrom(StageHost::kClientName)->Take().count, 3U);
}

}  // namespace
}  // namespace portico::pipeline
