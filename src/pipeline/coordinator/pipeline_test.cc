#include "pipeline/coordinator/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "pipeline/coordinator/listener_for_test.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::atomic<int> g_sent{0};
// Sends a megabyte for each part.
class ChattyRun final : public StageRun {
 public:
  explicit ChattyRun(std::shared_ptr<StageOutput> output) : output_(std::move(output)) {}
  Status OnPart(Part, std::string_view) override {
    output_->Emit(TextPart{std::string(100000, 'y')});
    ++g_sent;
    return OkStatus();
  }
  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  std::shared_ptr<StageOutput> output_;
};
// Never answers.
class SilentRun final : public StageRun {
 public:
  Status OnPart(Part, std::string_view) override { return OkStatus(); }
  void OnInputEnd() override {}
};
// Loads until it has been asked often whether it does.
class LoadingRun final : public StageRun {
 public:
  explicit LoadingRun(std::shared_ptr<StageOutput> output) : output_(std::move(output)) {}
  Status OnPart(Part, std::string_view) override { return OkStatus(); }
  void OnInputEnd() override {
    while (asked_ < 20 && !output_->aborted()) std::this_thread::sleep_for(1ms);
    output_->End(OkStatus());
  }
  bool loading() const override {
    ++asked_;
    return true;
  }

 private:
  std::shared_ptr<StageOutput> output_;
  mutable std::atomic<int> asked_{0};
};
template <typename Make>
class TestStage final : public Stage {
 public:
  TestStage(Make make, int running) : make_(make), running_(running) {}
  int max_running() const override { return running_; }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    return make_(std::move(output));
  }

 private:
  Make make_;
  int running_;
};
template <typename Make>
StageFactory Kind(Make make, int running = 0) {
  return [=](const StageConfig&) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<TestStage<Make>>(make, running));
  };
}

std::unique_ptr<Pipeline> StartOf(const std::string& text, Registry& registry) {
  Pipeline::Kinds kinds = NativeStages();
  kinds["chatty"] =
      Kind([](auto output) { return std::make_unique<ChattyRun>(std::move(output)); });
  kinds["silent"] = Kind([](auto) { return std::make_unique<SilentRun>(); });
  kinds["loading"] =
      Kind([](auto output) { return std::make_unique<LoadingRun>(std::move(output)); });
  kinds["one"] = Kind([](auto) { return std::make_unique<SilentRun>(); }, 1);
  auto config = ParsePipelineConfig(text, "p", {});
  EXPECT_TRUE(config.ok()) << config.status();
  auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", &registry);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

Request Text(std::string text, int parts = 1) {
  Request request;
  request.wants_audio = request.wants_text = true;
  for (int i = 0; i < parts; ++i) request.inputs.emplace_back(TextPart{text});
  return request;
}

bool Eventually(auto holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(10ms);
  return holds();
}

TEST(Pipeline, SendsPartsThroughStagesInOrder) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.mock, stream_to: b}\n"
      " - {name: b, factory_path: portico.pass, terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("hello"), listener.Wake());
  ASSERT_TRUE(call.ok()) << call.status();
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_TRUE(listener.status.ok()) << listener.status;
  EXPECT_EQ(listener.Text(), "w0 w1 w2 w3 w4 ");
  EXPECT_EQ(listener.parts.size(), 11U);
}

TEST(Pipeline, ServesWhatAStageThatIsReachedAnswers) {
  const auto served = [](const std::string& talk) {
    Registry registry;
    const auto pipeline = StartOf(
        "stages:\n - {name: talk, route_fn: portico.by_task, stream_to: [hear, reply], "
        "factory_path: " +
            talk +
            "}\n - {name: hear, factory_path: portico.mock, terminal: true}\n"
            " - {name: reply, factory_path: portico.pass, terminal: true}\n",
        registry);
    std::string tasks;
    for (const Task task : {Task::kSpeech, Task::kTranscription, Task::kChat}) {
      EXPECT_EQ(pipeline->CheckServes(task).ok(), pipeline->Serves(task));
      if (pipeline->Serves(task)) tasks += std::string(TaskName(task)) + " ";
    }
    return tasks;
  };
  // A chat with sound would reach `hear`, which is a mock here; speech has no terminal.
  EXPECT_EQ(served("portico.sentences"), "transcription chat ");
  EXPECT_EQ(served("portico.mock"), "transcription chat ");
  Registry registry;
  const auto passing =
      StartOf("stages:\n - {name: a, factory_path: portico.pass, terminal: true}\n", registry);
  EXPECT_EQ(FieldOf(passing->CheckServes(Task::kSpeech)), "input");
  EXPECT_EQ(FieldOf(passing->CheckServes(Task::kTranscription)), "file");
  EXPECT_EQ(FieldOf(passing->CheckServes(Task::kChat)), "messages");
}

TEST(Pipeline, CountsTheFirstSoundOfEachSpeech) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.mock, stream_to: b}\n"
      " - {name: b, factory_path: portico.encode, terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("hello"), listener.Wake());
  ASSERT_TRUE(call.ok()) << call.status();
  ASSERT_TRUE(listener.Collect(**call));
  std::string metrics;
  registry.Render(&metrics);
  for (const char* name : {"first_seconds", "real_time_factor", "underrun_seconds"}) {
    EXPECT_THAT(metrics,
                HasSubstr(std::string("portico_audio_") + name + "_count{task=\"speech\"} 1"));
    EXPECT_THAT(metrics,
                HasSubstr(std::string("portico_audio_") + name + "_count{task=\"chat\"} 0"));
  }
}

TEST(Pipeline, HoldsPartsBackUntilTheirSourceEndsWhereNothingStreams) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.mock, next: b}\n"
      " - {name: b, factory_path: portico.pass, terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("fail-late"), listener.Wake());
  ASSERT_TRUE(call.ok());
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_FALSE(listener.status.ok());
  EXPECT_TRUE(listener.parts.empty());
}

TEST(Pipeline, MergesFanInInTheOrderOfItsSources) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.pass, stream_to: [b, c]}\n"
      " - {name: b, factory_path: portico.mock, factory: {chunks: 1, delay_ms: 30}, next: d}\n"
      " - {name: c, factory_path: portico.mock, factory: {chunks: 2}, next: d}\n"
      " - {name: d, factory_path: portico.pass, wait_for: [b, c], merge_fn: portico.in_order,"
      " terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("x"), listener.Wake());
  ASSERT_TRUE(call.ok());
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_TRUE(listener.status.ok()) << listener.status;
  EXPECT_EQ(listener.Text(), "w0 w0 w1 ");
}

TEST(Pipeline, StopsTheFirstStageOfAClientThatDoesNotRead) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: chatty, stream_to: b}\n"
      " - {name: b, factory_path: portico.pass, terminal: true}\n",
      registry);
  g_sent = 0;
  Listener listener;
  auto call = pipeline->Submit(Text("x", 200), listener.Wake());
  ASSERT_TRUE(call.ok());
  // It has stopped when nothing comes for a while, however slow it is until then.
  int stopped = 0;
  for (int i = 0; i < 600 && (stopped == 0 || stopped != g_sent); ++i) {
    stopped = g_sent;
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_GT(stopped, 0);
  EXPECT_LT(stopped, 12);
  // Another request goes on.
  Listener other;
  auto quick = pipeline->Submit(Text("x", 3), other.Wake());
  ASSERT_TRUE(quick.ok());
  EXPECT_TRUE(other.Collect(**quick));
  // And the first when its client reads again.
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_EQ(listener.Text().size(), 200U * 100000U);
}

TEST(Pipeline, NamesTheStageThatIsSilent) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.pass, stream_to: mute}\n"
      " - {name: mute, factory_path: silent, stall_timeout_s: 0.1,"
      " terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("x"), listener.Wake());
  ASSERT_TRUE(call.ok());
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_EQ(listener.status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(listener.status.message()), HasSubstr("stage `mute`"));
}

// The first transcription loaded the recognizer, which a busy machine took for a stage that stands still.
TEST(Pipeline, TakesTheTimeInWhichAStageLoadsForProgress) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: loading, stall_timeout_s: 0.1, terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("x"), listener.Wake());
  ASSERT_TRUE(call.ok());
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_TRUE(listener.status.ok()) << listener.status;
}

TEST(Pipeline, EndsARequestAtItsDeadlineAndNamesTheHop) {
  Registry registry;
  auto pipeline = StartOf(
      "timeout_s: 0.2\nstages:\n"
      " - {name: a, factory_path: silent, terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("x"), listener.Wake());
  ASSERT_TRUE(call.ok());
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_EQ(listener.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(listener.status.message()), HasSubstr("in stage `a`"));
}

TEST(Pipeline, EndsARequestWhosePartWaitsTooLongForAStageAndNamesBoth) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.pass, stream_to: b}\n"
      " - {name: b, factory_path: one, hop_timeout_s: 0.2, terminal: true}\n",
      registry);
  Listener listener, other;
  auto first = pipeline->Submit(Text("x"), listener.Wake());
  ASSERT_TRUE(first.ok());
  const auto took = [&registry] {
    std::string metrics;
    registry.Render(&metrics);
    return metrics.find("portico_hop_seconds_count{source=\"a\",target=\"b\"} 1\n") !=
           std::string::npos;
  };
  ASSERT_TRUE(Eventually(took));
  auto second = pipeline->Submit(Text("x"), other.Wake());
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(other.Collect(**second));
  EXPECT_EQ(other.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(other.status.message()),
              HasSubstr("what stage `a` has sent waits for stage `b` longer than 0.2 s"));
  EXPECT_FALSE((*first)->Take().ended);  // it has its place, and nothing waits for it
}

TEST(Pipeline, APartThatWaitsBehindAClientWhoDoesNotReadIsNotLate) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.pass, stream_to: b}\n"
      " - {name: b, factory_path: chatty, hop_timeout_s: 0.1, stream_to: c}\n"
      " - {name: c, factory_path: portico.pass, hop_timeout_s: 0.1, terminal: true}\n",
      registry);
  g_sent = 0;
  Listener listener;
  auto call = pipeline->Submit(Text("x", 50), listener.Wake());
  ASSERT_TRUE(call.ok());
  ASSERT_TRUE(Eventually([] { return g_sent >= 3; }));
  std::this_thread::sleep_for(500ms);
  ASSERT_TRUE(listener.Collect(**call));
  EXPECT_TRUE(listener.status.ok()) << listener.status;
  EXPECT_EQ(listener.Text().size(), 50U * 100000U);
}

TEST(Pipeline, CountsTheTimeOfEveryHopByItsTwoStages) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.mock, factory: {audio: false}, next: b}\n"
      " - {name: b, factory_path: portico.pass, terminal: true}\n",
      registry);
  Listener listener;
  auto call = pipeline->Submit(Text("x", 3), listener.Wake());
  ASSERT_TRUE(call.ok());
  ASSERT_TRUE(listener.Collect(**call));
  std::string metrics;
  registry.Render(&metrics);
  for (const char* line :
       {"{source=\"(client)\",target=\"a\"} 3\n", "{source=\"a\",target=\"b\"} 6\n",
        "{source=\"b\",target=\"(client)\"} 6\n"}) {
    EXPECT_THAT(metrics, HasSubstr(std::string("portico_hop_seconds_count") + line));
  }
}

TEST(Pipeline, RefusesBeyondItsBounds) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: one, max_queued: 1,"
      " terminal: true}\n",
      registry);
  Listener listener;
  auto first = pipeline->Submit(Text("x"), listener.Wake());
  auto second = pipeline->Submit(Text("x"), listener.Wake());
  auto third = pipeline->Submit(Text("x"), listener.Wake());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(third.status().code(), StatusCode::kResourceExhausted);
  second->reset();
  first->reset();
  EXPECT_TRUE(Eventually([&] { return pipeline->in_flight() == 0; }));
  EXPECT_TRUE(pipeline->Submit(Text("x"), listener.Wake()).ok());
}

TEST(Pipeline, LeavesNothingBehindAfterManyEarlyEnds) {
  Registry registry;
  auto pipeline = StartOf(
      "stages:\n - {name: a, factory_path: portico.mock, stream_to: b}\n"
      " - {name: b, factory_path: portico.encode, terminal: true}\n",
      registry);
  Listener listener;
  for (int i = 0; i < 2000; ++i) {
    auto call = pipeline->Submit(Text(i % 3 == 0 ? "fail-now" : "x"), listener.Wake());
    if (!call.ok()) {
      EXPECT_EQ(call.status().code(), StatusCode::kResourceExhausted);
      std::this_thread::sleep_for(1ms);
      continue;
    }
    if (i % 2 == 0) (*call)->Take();
  }
  EXPECT_TRUE(Eventually([&] { return pipeline->in_flight() == 0; }));
}

constexpr char kByTask[] =
    "stages:\n - {name: in, factory_path: portico.pass, route_fn: portico.first_by_task,"
    " stream_to: [hear, think, say]}\n"
    " - {name: hear, factory_path: portico.hear, route_fn: portico.by_task,"
    " stream_to: [think, transcript]}\n"
    " - {name: transcript, factory_path: portico.pass, terminal: true}\n"
    " - {name: think, factory_path: portico.mock, route_fn: portico.by_task,"
    " stream_to: [reply, say]}\n"
    " - {name: reply, factory_path: portico.pass, terminal: true}\n"
    " - {name: say, factory_path: %s, stream_to: encode}\n"
    " - {name: encode, factory_path: portico.encode, terminal: true}\n";

std::unique_ptr<Pipeline> StartByTask(std::string_view voice, Registry& registry) {
  std::string text = kByTask;
  text.replace(text.find("%s"), 2, voice);
  Pipeline::Kinds kinds = NativeStages();
  // Needs no recognizer to be installed.
  class Ears final : public Stage {
   public:
    bool TakesParam(std::string_view name) const override { return name == "grammar"; }
    Status Check(const Request& request) const override {
      const Json* grammar = request.Param("hear", "grammar");
      if (grammar == nullptr || grammar->is_string()) return OkStatus();
      return InvalidArgument("stage_params", "a grammar is a text");
    }
    std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                    std::shared_ptr<StageOutput>) override {
      return std::make_unique<SilentRun>();
    }
  };
  kinds["portico.hear"] = [](const StageConfig&) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<Ears>());
  };
  auto config = ParsePipelineConfig(text, "p", {});
  EXPECT_TRUE(config.ok()) << config.status();
  auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", &registry);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

TEST(Pipeline, RefusesParametersOfAStageThatNoSuchRequestReaches) {
  Registry registry;
  auto pipeline = StartByTask("portico.mock", registry);
  const auto check = [&](Task task, std::string_view params) {
    Request request = Text("x");
    request.task = task;
    request.stage_params = *Json::Parse(params);
    return pipeline->Check(request);
  };
  const Status refused = check(Task::kSpeech, R"({"hear":{"grammar":"x"}})");
  EXPECT_EQ(FieldOf(refused), "stage_params");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("stage `hear` has no part in a speech"));
  EXPECT_TRUE(check(Task::kSpeech, R"({"say":{"x":1}})").ok());
  EXPECT_TRUE(check(Task::kSpeech, R"({"hear":{}})").ok());
  EXPECT_TRUE(check(Task::kTranscription, R"({"hear":{"grammar":"x"}})").ok());
  EXPECT_EQ(FieldOf(check(Task::kTranscription, R"({"say":{"x":1}})")), "stage_params");
  // A chat of text alone goes another way, and may be followed by one with sound.
  EXPECT_TRUE(check(Task::kChat, R"({"hear":{"grammar":"x"}})").ok());
  EXPECT_EQ(FieldOf(check(Task::kChat, R"({"hear":{"grammar":7}})")), "stage_params");
}

TEST(Pipeline, RefusesSamplingOfASpeechThatNoStageSamples) {
  Registry registry;
  Request request = Text("x");
  request.sampling = *Json::Parse(R"({"temperature":0.5,"seed":7})");
  EXPECT_TRUE(StartByTask("portico.mock", registry)->Check(request).ok());
  Registry other;
  // Its thinker samples, and speaks no speech.
  EXPECT_EQ(FieldOf(StartByTask("portico.pass", other)->Check(request)), "temperature");
}

TEST(Pipeline, TellsWhichFactoryPathIsUnknown) {
  Registry registry;
  auto config = ParsePipelineConfig("stages:\n - {name: a, factory_path: nope, terminal: true}\n",
                                    "p.yaml", {});
  ASSERT_TRUE(config.ok());
  const auto started = Pipeline::Start(*std::move(config), NativeStages(), "p.yaml", &registry);
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("p.yaml:2: stage `a`"));
}

TEST(Pipeline, NamesTheFlagsOfAStageThatCannotStart) {
  Registry registry;
  auto config =
      ParsePipelineConfig("stages:\n - {name: a, factory_path: portico.pass, terminal: true}\n",
                          "p.yaml", {{"a.factory.voice", "x"}, {"timeout_s", "5"}});
  ASSERT_TRUE(config.ok());
  const auto started = Pipeline::Start(*std::move(config), NativeStages(), "p.yaml", &registry);
  EXPECT_EQ(std::string(started.status().message()),
            "p.yaml:2: stage `a`: factory has no `voice`; it takes nothing (with "
            "--a.factory.voice)");
}

}  // namespace
}  // namespace portico::pipeline
