// An abort reaches every stage of a request, whatever the stage does at that moment. Steps are counted, not time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "pipeline/coordinator/listener_for_test.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

// What one stage has done.
struct StageLog {
  std::atomic<int> begun{0};
  std::atomic<int> live{0};
  std::atomic<int> steps{0};
  std::atomic<int> aborts{0};
};

// Begins with its first part, or at the end of its input, and takes steps until it is stopped. A stage that
// `waits` takes none: it waits for somebody else, and for Abort().
class SteppingRun final : public StageRun {
 public:
  SteppingRun(std::shared_ptr<StageOutput> output, StageLog* log, bool waits)
      : output_(std::move(output)), log_(*log), waits_(waits) {
    ++log_.begun;
    ++log_.live;
  }
  ~SteppingRun() override { --log_.live; }
  Status OnPart(Part, std::string_view) override {
    if (!waits_) Step();
    return OkStatus();
  }
  void OnInputEnd() override {
    if (!waits_) Step();
  }
  void Abort() override { ++log_.aborts; }

 private:
  void Step() {
    while (output_->Emit(TextPart{"step"})) {
      ++log_.steps;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const std::shared_ptr<StageOutput> output_;
  StageLog& log_;
  const bool waits_;
};

class SteppingStage final : public Stage {
 public:
  SteppingStage(StageLog* log, bool waits) : log_(log), waits_(waits) {}
  int max_running() const override { return 1; }
  bool own_threads() const override { return true; }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<SteppingRun>(std::move(output), log_, waits_);
  }

 private:
  StageLog* const log_;
  const bool waits_;
};

StageFactory Stepping(StageLog* log, bool waits = false) {
  return [=](const StageConfig&) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<SteppingStage>(log, waits));
  };
}

bool EventuallyHolds(auto holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return holds();
}

class AbortTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Pipeline::Kinds kinds = NativeStages();
    kinds["first"] = Stepping(&first_);
    kinds["second"] = Stepping(&second_);
    kinds["third"] = Stepping(&third_);
    kinds["waiting"] = Stepping(&waiting_, /*waits=*/true);
    kinds["last"] = Stepping(&last_);
    auto config = ParsePipelineConfig(
        "stages:\n"
        " - {name: a, factory_path: first, stream_to: [b, w]}\n"
        " - {name: b, factory_path: second, stream_to: c}\n"
        " - {name: c, factory_path: third, next: d}\n"
        " - {name: w, factory_path: waiting, terminal: true}\n"
        " - {name: d, factory_path: last, terminal: true}\n",
        "p", {});
    ASSERT_TRUE(config.ok()) << config.status();
    auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", &registry_);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    pipeline_ = *std::move(pipeline);
  }

  StatusOr<std::unique_ptr<Call>> Submit(Listener& listener) {
    Request request;
    request.wants_audio = request.wants_text = true;
    request.inputs.emplace_back(TextPart{"x"});
    return pipeline_->Submit(std::move(request), listener.Wake());
  }

  Registry registry_;
  StageLog first_, second_, third_, waiting_, last_;
  std::unique_ptr<Pipeline> pipeline_;
};

// A test of it had one stage, and slept for 50 ms.
TEST_F(AbortTest, ReachesEveryStageAndNoneTakesAnotherStep) {
  Listener listener;
  auto call = Submit(listener);
  ASSERT_TRUE(call.ok()) << call.status();
  const std::array<StageLog*, 3> working{&first_, &second_, &third_};
  ASSERT_TRUE(EventuallyHolds([&] {
    return first_.steps > 0 && second_.steps > 0 && third_.steps > 0 && waiting_.begun > 0;
  }));
  call->reset();
  // One step may have been taken and not been counted yet.
  std::array<int, 3> most{};
  for (size_t i = 0; i < working.size(); ++i) most[i] = working[i]->steps + 1;
  ASSERT_TRUE(EventuallyHolds([&] {
    return first_.live + second_.live + third_.live + waiting_.live == 0 &&
           pipeline_->in_flight() == 0;
  }));
  for (size_t i = 0; i < working.size(); ++i) {
    EXPECT_LE(working[i]->steps, most[i]) << "stage " << i;
    EXPECT_EQ(working[i]->aborts, 1) << "stage " << i;
  }
  EXPECT_EQ(waiting_.aborts, 1);
  EXPECT_EQ(last_.begun, 0);
}

TEST_F(AbortTest, OfARequestThatWaitsForAPlaceLetsNothingBegin) {
  Listener listener;
  auto call = Submit(listener);
  ASSERT_TRUE(call.ok()) << call.status();
  ASSERT_TRUE(EventuallyHolds([&] { return first_.steps > 0; }));
  Listener other;
  auto queued = Submit(other);
  ASSERT_TRUE(queued.ok()) << queued.status();
  queued->reset();
  call->reset();
  ASSERT_TRUE(EventuallyHolds([&] { return pipeline_->in_flight() == 0; }));
  EXPECT_EQ(first_.begun, 1);
}

}  // namespace
}  // namespace portico::pipeline
