// Places in stages of bounded concurrency, and how they go from one request to the next.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

using namespace std::chrono_literals;

// Runs of a test's stages: each goes on until the test ends it.
class HeldRuns {
 public:
  using Output = std::shared_ptr<StageOutput>;

  void Add(const std::string& request, const std::string& stage, Output output) {
    const MutexLock lock(&mutex_);
    outputs_[{request, stage}] = std::move(output);
    changed_.NotifyAll();
  }
  // The output of a run, once the run has begun; null where it does not begin.
  Output Wait(const std::string& request, const std::string& stage) {
    const TimePoint deadline = Clock::now() + 30s;
    const MutexLock lock(&mutex_);
    Output& output = outputs_[{request, stage}];
    while (output == nullptr && changed_.WaitUntil(&mutex_, deadline)) {
    }
    return output;
  }

  // While it is set, the first question of each stage for max_running() waits here for the other one's.
  std::atomic<std::latch*> meet{nullptr};

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<std::string, std::string>, Output> outputs_ ABSL_GUARDED_BY(mutex_);
};

class HeldStage final : public Stage {
 public:
  HeldStage(HeldRuns* runs, std::string name, int running)
      : runs_(*runs), name_(std::move(name)), running_(running) {}

  int max_running() const override {
    if (std::latch* meet = runs_.meet; meet != nullptr && running_ > 0 && !met_.exchange(true)) {
      meet->arrive_and_wait();
    }
    return running_;
  }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    class HeldRun final : public StageRun {
      Status OnPart(Part, std::string_view) override { return OkStatus(); }
      void OnInputEnd() override {}
    };
    runs_.Add(request->id, name_, std::move(output));
    return std::make_unique<HeldRun>();
  }

 private:
  HeldRuns& runs_;
  const std::string name_;
  const int running_;
  mutable std::atomic<bool> met_{false};
};

std::unique_ptr<Pipeline> StartHeld(const std::string& text, HeldRuns* runs, Registry* registry) {
  const auto kind = [runs](int running) -> StageFactory {
    return [runs, running](const StageConfig& config) -> StatusOr<std::unique_ptr<Stage>> {
      return std::unique_ptr<Stage>(std::make_unique<HeldStage>(runs, config.name, running));
    };
  };
  Pipeline::Kinds kinds = NativeStages();
  kinds["held"] = kind(0);
  kinds["one"] = kind(1);
  auto config = ParsePipelineConfig(text, "p", {});
  EXPECT_TRUE(config.ok()) << config.status();
  auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", registry);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

std::unique_ptr<Call> SubmitTo(Pipeline& pipeline, std::string id, Duration timeout,
                               std::function<void()> on_ready) {
  Request request;
  request.id = std::move(id);
  request.wants_audio = request.wants_text = true;
  request.timeout = timeout;
  request.inputs.emplace_back(TextPart{"x"});
  auto call = pipeline.Submit(std::move(request), std::move(on_ready));
  EXPECT_TRUE(call.ok()) << call.status();
  return *std::move(call);
}

bool HoldsInTime(auto holds) {
  for (int i = 0; i < 3000 && !holds(); ++i) std::this_thread::sleep_for(10ms);
  return holds();
}

// What holds a lock for ever cannot be destroyed, so that the test cannot go on.
void MustEnd(std::future<void> work, const char* what) {
  if (work.wait_for(60s) == std::future_status::ready) return;
  ADD_FAILURE() << what << " does not end";
  std::abort();
}

// A stage that a request left asked those that wait for it, under its own lock, whether they were over, and each answered under
// its lock: two requests that left at a time what the other waited for stopped for ever.
TEST(StageHost, LetsTwoRequestsLeaveAtATimeWhatTheOtherOneWaitsFor) {
  Registry registry;
  HeldRuns runs;
  auto pipeline = StartHeld(
      "stages:\n - {name: split, factory_path: portico.pass, stream_to: [a, b]}\n"
      " - {name: a, factory_path: held, stream_to: left}\n"
      " - {name: b, factory_path: held, stream_to: right}\n"
      " - {name: left, factory_path: one, terminal: true}\n"
      " - {name: right, factory_path: one, terminal: true}\n",
      &runs, &registry);
  const auto first = SubmitTo(*pipeline, "1", 300s, [] {});
  const auto second = SubmitTo(*pipeline, "2", 300s, [] {});
  const auto send = [&runs](const char* request, const char* from) {
    const HeldRuns::Output output = runs.Wait(request, from);
    ASSERT_NE(output, nullptr);
    EXPECT_TRUE(output->Emit(TextPart{"x"}));
  };
  send("1", "a");
  send("2", "b");
  const HeldRuns::Output left = runs.Wait("1", "left");
  const HeldRuns::Output right = runs.Wait("2", "right");
  ASSERT_TRUE(left != nullptr && right != nullptr);
  send("2", "a");
  send("1", "b");
  std::latch both(2);
  runs.meet = &both;
  auto leaves_left = std::async(std::launch::async, [&] { left->End(OkStatus()); });
  auto leaves_right = std::async(std::launch::async, [&] { right->End(OkStatus()); });
  MustEnd(std::move(leaves_left), "leaving the stage `left`");
  MustEnd(std::move(leaves_right), "leaving the stage `right`");
  for (const auto& [request, stage] : {std::pair("2", "left"), std::pair("1", "right")}) {
    const HeldRuns::Output output = runs.Wait(request, stage);
    ASSERT_NE(output, nullptr) << request << " has no place in " << stage;
    output->End(OkStatus());
  }
  EXPECT_TRUE(HoldsInTime([&] { return first->Take().ended && second->Take().ended; }));
}

// The stage held its lock while it let go of a waiting request, and the end of a request needs that lock.
TEST(StageHost, SurvivesAWaitingRequestThatGoesAwayWhileAPlaceIsGiven) {
  Registry registry;
  HeldRuns runs;
  auto pipeline =
      StartHeld("stages:\n - {name: a, factory_path: one, terminal: true}\n", &runs, &registry);
  for (int round = 0; round < 20; ++round) {
    const std::string id = std::to_string(round);
    auto running = SubmitTo(*pipeline, id, 300s, [] {});
    const HeldRuns::Output output = runs.Wait(id, "a");
    ASSERT_NE(output, nullptr);
    // Its deadline passes while it waits; it keeps its lock as long as its client is being told.
    std::latch told(1);
    std::latch go_on(1);
    auto late = SubmitTo(*pipeline, "late", 1ms, [&] {
      told.count_down();
      go_on.wait();
    });
    told.wait();
    auto dropped = std::async(std::launch::async, [&] { late.reset(); });
    std::this_thread::sleep_for(2ms);
    auto leaves = std::async(std::launch::async, [&] { output->End(OkStatus()); });
    std::this_thread::sleep_for(2ms);
    go_on.count_down();
    MustEnd(std::move(leaves), "leaving the stage");
    MustEnd(std::move(dropped), "dropping the call");
    running.reset();
    EXPECT_TRUE(HoldsInTime([&] { return pipeline->in_flight() == 0; }));
  }
}

bool HasMetric(Registry& registry, const std::string& sample) {
  std::string metrics;
  registry.Render(&metrics);
  return metrics.find("\n" + sample + "\n") != std::string::npos;
}

Status ProcessHasGone() { return Error(StatusCode::kUnavailable, "its process has gone"); }

// The one that had died was still admitted when its successor asked, which a full stage refused.
TEST(StageHost, LetsARequestBeginAnewWhereNoOtherIsAdmitted) {
  Registry registry;
  HeldRuns runs;
  auto pipeline = StartHeld(
      "stages:\n - {name: a, factory_path: one, max_queued: 0, stream_to: b}\n"
      " - {name: b, factory_path: one, max_queued: 0, terminal: true}\n",
      &runs, &registry);
  auto call = SubmitTo(*pipeline, "1", 300s, [] {});
  const HeldRuns::Output first = runs.Wait("1", "a");
  ASSERT_NE(first, nullptr);
  first->Died(ProcessHasGone());
  const Call::Taken taken = call->Take();
  ASSERT_FALSE(taken.ended) << taken.status;
  EXPECT_TRUE(HoldsInTime([&] { return runs.Wait("1", "a") != first; }));
  EXPECT_TRUE(HasMetric(registry, "portico_stage_requests{stage=\"b\"} 1"));
  runs.Wait("1", "a")->Emit(TextPart{"x"});
  const HeldRuns::Output last = runs.Wait("1", "b");
  ASSERT_NE(last, nullptr);
  last->End(OkStatus());
  EXPECT_TRUE(HoldsInTime([&] { return call->Take().ended; }));
  EXPECT_TRUE(call->Take().status.ok());
  call.reset();
  EXPECT_TRUE(HoldsInTime([&] { return pipeline->in_flight() == 0; }));
  EXPECT_TRUE(HasMetric(registry, "portico_stage_requests{stage=\"b\"} 0"));
}

// That their sound had come was in no metric.
TEST(StageHost, MeasuresTheSoundOfRequestsThatDieAndDoNotBeginAnew) {
  Registry registry;
  HeldRuns runs;
  auto pipeline =
      StartHeld("stages:\n - {name: a, factory_path: held, terminal: true}\n", &runs, &registry);
  const auto measured = [&registry](int requests) {
    return HasMetric(
        registry, "portico_audio_first_seconds_count{task=\"speech\"} " + std::to_string(requests));
  };
  const auto sound_of = [&runs](const char* request) {
    HeldRuns::Output output = runs.Wait(request, "a");
    EXPECT_TRUE(output != nullptr && output->Emit(EncodedPart{"x", 16000, 0.1})) << request;
    return output;
  };
  auto leaves = SubmitTo(*pipeline, "leaves", 300s, [] {});
  sound_of("leaves")->Died(ProcessHasGone());
  EXPECT_TRUE(measured(0));
  leaves.reset();
  EXPECT_TRUE(measured(1));
  const auto stays = SubmitTo(*pipeline, "stays", 300s, [] {});
  const HeldRuns::Output output = sound_of("stays");
  EXPECT_EQ(stays->Take().parts.size(), 1U);
  output->Died(ProcessHasGone());
  EXPECT_TRUE(stays->Take().ended);
  EXPECT_TRUE(measured(2));
}

// Passes on what comes. Of requests whose id begins with "left", it lets only the stage `left` know that it has ended.
class LeavingStage final : public Stage {
 public:
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<Run>(request->id.starts_with("left"), std::move(output));
  }

 private:
  class Run final : public StageRun {
   public:
    Run(bool leaves, std::shared_ptr<StageOutput> output)
        : leaves_(leaves), output_(std::move(output)) {}
    Status OnPart(Part part, std::string_view) override {
      output_->Emit(std::move(part));
      return OkStatus();
    }
    void OnInputEnd() override {
      if (leaves_) output_->EndStreams({"left"});
      output_->End(OkStatus());
    }

   private:
    const bool leaves_;
    const std::shared_ptr<StageOutput> output_;
  };
};

// Its one thread begins runs, which do nothing but end, once the test lets it go on.
class SlowStage final : public Stage {
 public:
  struct Held {
    std::atomic<int> begun{0};
    std::latch go_on{1};
  };
  explicit SlowStage(Held* held) : held_(*held) {}
  bool own_threads() const override { return true; }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    ++held_.begun;
    held_.go_on.wait();
    return std::make_unique<Run>(std::move(output));
  }

 private:
  class Run final : public StageRun {
   public:
    explicit Run(std::shared_ptr<StageOutput> output) : output_(std::move(output)) {}
    Status OnPart(Part, std::string_view) override { return OkStatus(); }
    void OnInputEnd() override { output_->End(OkStatus()); }

   private:
    const std::shared_ptr<StageOutput> output_;
  };

  Held& held_;
};

std::unique_ptr<Pipeline> StartSlow(const std::string& text, HeldRuns* runs, SlowStage::Held* held,
                                    Registry* registry) {
  Pipeline::Kinds kinds = NativeStages();
  kinds["held"] = [runs](const StageConfig& config) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<HeldStage>(runs, config.name, 0));
  };
  kinds["leaving"] = [](const StageConfig&) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<LeavingStage>());
  };
  kinds["slow"] = [held](const StageConfig&) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<SlowStage>(held));
  };
  auto config = ParsePipelineConfig(text, "p", {});
  EXPECT_TRUE(config.ok()) << config.status();
  auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", registry);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

bool HasMeasured(Registry& registry, const std::string& stage, int requests) {
  std::string metrics;
  registry.Render(&metrics);
  return metrics.find("portico_stage_seconds_count{stage=\"" + stage + "\"} " +
                      std::to_string(requests) + "\n") != std::string::npos;
}

// Its time in the stage was that since the machine's start.
TEST(StageHost, DoesNotMeasureARequestThatNeverBeganThere) {
  Registry registry;
  HeldRuns runs;
  SlowStage::Held held;
  auto pipeline =
      StartSlow("max_in_flight: 100\nstages:\n - {name: a, factory_path: slow, terminal: true}\n",
                &runs, &held, &registry);
  std::vector<std::unique_ptr<Call>> calls;
  calls.push_back(SubmitTo(*pipeline, "first", 300s, [] {}));
  EXPECT_TRUE(HoldsInTime([&] { return held.begun == 1; }));
  // The thread's queue has 64 places.
  while (calls.size() < 65) calls.push_back(SubmitTo(*pipeline, "more", 300s, [] {}));
  const auto refused = SubmitTo(*pipeline, "refused", 300s, [] {});
  EXPECT_TRUE(HoldsInTime([&] { return refused->Take().ended; }));
  EXPECT_EQ(refused->Take().status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(HasMeasured(registry, "a", 0));
  held.go_on.count_down();
  for (const auto& call : calls) {
    EXPECT_TRUE(HoldsInTime([&] { return call->Take().ended; }));
  }
  EXPECT_TRUE(HoldsInTime([&] { return HasMeasured(registry, "a", 65); }));
}

// It began, for nobody, where its source had left it out before its thread came to it.
TEST(StageHost, DoesNotBeginARequestThatHasBeenLeftOutMeanwhile) {
  Registry registry;
  HeldRuns runs;
  SlowStage::Held held;
  auto pipeline = StartSlow(
      "stages:\n - {name: first, factory_path: leaving, stream_to: [left, right]}\n"
      " - {name: left, factory_path: held, terminal: true}\n"
      " - {name: right, factory_path: slow, terminal: true}\n",
      &runs, &held, &registry);
  const auto end_left = [&runs](const char* request) {
    const HeldRuns::Output left = runs.Wait(request, "left");
    ASSERT_NE(left, nullptr);
    left->End(OkStatus());
  };
  const auto one = SubmitTo(*pipeline, "both one", 300s, [] {});
  EXPECT_TRUE(HoldsInTime([&] { return held.begun == 1; }));
  const auto two = SubmitTo(*pipeline, "left two", 300s, [] {});
  EXPECT_TRUE(HoldsInTime([&] { return HasMeasured(registry, "first", 2); }));
  const auto three = SubmitTo(*pipeline, "both three", 300s, [] {});
  EXPECT_TRUE(HoldsInTime([&] { return HasMeasured(registry, "first", 3); }));
  held.go_on.count_down();
  end_left("both one");
  end_left("both three");
  // The thread has come by the second one on its way to the third.
  EXPECT_TRUE(HoldsInTime([&] { return one->Take().ended && three->Take().ended; }));
  EXPECT_EQ(held.begun, 2);
  end_left("left two");
  EXPECT_TRUE(HoldsInTime([&] { return two->Take().ended; }));
}

}  // namespace
}  // namespace portico::pipeline
