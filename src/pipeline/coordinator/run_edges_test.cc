// Streams between stages: back to a stage before, beside what a stage waits for, and their ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/coordinator/pipeline.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// What a run of a test does; what is left out does nothing, but for the end of the input, which ends the run.
struct RunScript {
  std::function<void(StageOutput&, const std::string& text, std::string_view source)> part;
  std::function<void(StageOutput&)> input_end = [](StageOutput& output) { output.End(OkStatus()); };
  std::function<void(StageOutput&, std::string_view source)> source_end;
  std::function<void(StageOutput&)> gathered;
  std::function<void()> aborted;
  std::function<bool()> accepts;
};

class ScriptedRun final : public StageRun {
 public:
  ScriptedRun(RunScript script, std::shared_ptr<StageOutput> output)
      : script_(std::move(script)), output_(std::move(output)) {}
  Status OnPart(Part part, std::string_view source) override {
    if (script_.part) script_.part(*output_, std::get<TextPart>(part).text, source);
    return OkStatus();
  }
  void OnInputEnd() override { script_.input_end(*output_); }
  void OnSourceEnd(std::string_view source) override {
    if (script_.source_end) script_.source_end(*output_, source);
  }
  void OnGathered() override {
    if (script_.gathered) script_.gathered(*output_);
  }
  void Abort() override {
    if (script_.aborted) script_.aborted();
  }
  bool Accepts() const override { return !script_.accepts || script_.accepts(); }

 private:
  const RunScript script_;
  const std::shared_ptr<StageOutput> output_;
};

class ScriptedStage final : public Stage {
 public:
  ScriptedStage(std::function<RunScript()> make, bool sees_ends)
      : make_(std::move(make)), sees_ends_(sees_ends) {}
  bool sees_ends() const override { return sees_ends_; }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<ScriptedRun>(make_(), std::move(output));
  }

 private:
  const std::function<RunScript()> make_;
  const bool sees_ends_;
};

StageFactory KindOf(std::function<RunScript()> make, bool sees_ends = true) {
  return [=](const StageConfig&) -> StatusOr<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<ScriptedStage>(make, sees_ends));
  };
}

// Says its stage's name in front of what comes, and at the end.
StatusOr<std::unique_ptr<Stage>> MakeNaming(const StageConfig& config) {
  return KindOf(
      [name = config.name] {
        RunScript script;
        script.part = [name](StageOutput& output, const std::string& text, std::string_view) {
          output.Emit(TextPart{name + " " + text});
        };
        script.input_end = [name](StageOutput& output) {
          output.Emit(TextPart{name + " end "});
          output.End(OkStatus());
        };
        return script;
      },
      /*sees_ends=*/false)(config);
}

// Passes on what comes, and what the ends are.
RunScript Telling() {
  RunScript script;
  script.part = [](StageOutput& output, const std::string& text, std::string_view) {
    output.Emit(TextPart{text});
  };
  script.source_end = [](StageOutput& output, std::string_view source) {
    output.Emit(TextPart{"no more of " + std::string(source) + " "});
  };
  script.gathered = [](StageOutput& output) { output.Emit(TextPart{"all "}); };
  return script;
}

// Puts brackets around what comes.
RunScript Bracketing() {
  RunScript script;
  script.part = [](StageOutput& output, const std::string& text, std::string_view) {
    output.Emit(TextPart{"(" + text + ")"});
  };
  return script;
}

struct Answered {
  std::string text;
  Status status;
};

Answered AnswerOfEdges(const std::string& stages, Pipeline::Kinds kinds) {
  Registry registry;
  kinds.merge(NativeStages());
  kinds["name"] = MakeNaming;
  auto config = ParsePipelineConfig("stages:\n" + stages, "p", {});
  if (!config.ok()) return {"", config.status()};
  auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", &registry);
  if (!pipeline.ok()) return {"", pipeline.status()};
  Request request;
  request.wants_text = true;
  request.inputs.emplace_back(TextPart{"x "});
  auto call = (*pipeline)->Submit(std::move(request), [] {});
  if (!call.ok()) return {"", call.status()};
  Answered answer;
  for (int i = 0; i < 6000; ++i) {
    Call::Taken taken = (*call)->Take();
    for (const Part& part : taken.parts) answer.text += std::get<TextPart>(part).text;
    if (taken.ended) {
      answer.status = taken.status;
      return answer;
    }
    std::this_thread::sleep_for(5ms);
  }
  answer.status = Error(StatusCode::kInternal, "it has not ended");
  return answer;
}

bool Becomes(const std::atomic<bool>& flag) {
  for (int i = 0; i < 6000 && !flag; ++i) std::this_thread::sleep_for(5ms);
  return flag;
}

constexpr char kLoop[] =
    " - {name: talk, factory_path: talk, next: out, stream_to: predict}\n"
    " - {name: predict, factory_path: predict, stream_to: talk}\n"
    " - {name: out, factory_path: portico.pass, terminal: true}\n";

TEST(Edges, AStageBehindStreamsBackToOneThatEndsByItself) {
  std::atomic<int> input_ends = 0;
  const auto talk = [&input_ends] {
    RunScript script;
    script.part = [](StageOutput& output, const std::string& text, std::string_view source) {
      if (source.empty()) {
        output.EmitTo(TextPart{"1"}, "predict");
      } else if (text.size() < 7) {
        output.EmitTo(TextPart{text}, "predict");
      } else {
        output.EmitTo(TextPart{text}, "out");
        output.End(OkStatus());
      }
    };
    script.source_end = [](StageOutput& output, std::string_view source) {
      output.EmitTo(TextPart{source.empty() ? "asked " : "? "}, "out");
    };
    script.input_end = [&input_ends](StageOutput&) { ++input_ends; };
    return script;
  };
  const Answered answer =
      AnswerOfEdges(kLoop, {{"talk", KindOf(talk)}, {"predict", KindOf(Bracketing)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "asked (((1)))");
  EXPECT_EQ(input_ends, 0);
}

TEST(Edges, AStageThatIsLeftOutOfWhatIsStreamedBackGoesOn) {
  std::atomic<bool> left_out = false;
  const auto talk = [&left_out] {
    RunScript script;
    script.part = [&left_out](StageOutput& output, const std::string&, std::string_view) {
      output.EmitTo(TextPart{"1"}, "predict");
      EXPECT_TRUE(Becomes(left_out));
      output.EmitTo(TextPart{"the rest"}, "out");
      output.End(OkStatus());
    };
    script.input_end = [](StageOutput&) {};
    return script;
  };
  const auto predict = [&left_out] {
    RunScript script;
    script.part = [&left_out](StageOutput& output, const std::string&, std::string_view) {
      output.EndStreams({});
      output.End(OkStatus());
      left_out = true;
    };
    return script;
  };
  const Answered answer =
      AnswerOfEdges(kLoop, {{"talk", KindOf(talk)}, {"predict", KindOf(predict)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "the rest");
}

TEST(Edges, AFullQueueOnBothSidesOfACycleEmpties) {
  constexpr int kParts = 64;
  const auto talk = [] {
    RunScript script;
    script.part = [answers = std::make_shared<int>(0)](StageOutput& output, const std::string& text,
                                                       std::string_view source) {
      if (source.empty()) {
        for (int i = 0; i < kParts; ++i) {
          output.EmitTo(TextPart{std::string(100000, 'x')}, "predict");
        }
      } else if (++*answers == kParts) {
        output.EmitTo(TextPart{std::to_string(text.size())}, "out");
        output.End(OkStatus());
      }
    };
    return script;
  };
  const Answered answer =
      AnswerOfEdges(kLoop, {{"talk", KindOf(talk)}, {"predict", KindOf(Bracketing)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "100002");
}

TEST(Edges, WhatIsStreamedBackToAStageThatDoesNotTakeItIsBounded) {
  const auto talk = [] {
    RunScript script;
    auto asked = std::make_shared<std::atomic<bool>>(false);
    script.part = [asked](StageOutput& output, const std::string&, std::string_view) {
      *asked = true;
      output.EmitTo(TextPart{"1"}, "predict");
    };
    script.accepts = [asked] { return !*asked; };
    return script;
  };
  const auto predict = [] {
    RunScript script;
    script.part = [](StageOutput& output, const std::string&, std::string_view) {
      while (output.Emit(TextPart{std::string(1 << 20, 'y')})) {
      }
    };
    return script;
  };
  const Answered answer =
      AnswerOfEdges(kLoop, {{"talk", KindOf(talk)}, {"predict", KindOf(predict)}});
  EXPECT_EQ(answer.status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(answer.status.message()), HasSubstr("wait for stage `talk`"));
}

TEST(Edges, AStageThatSeesNoEndsIsNotBehindItself) {
  const Answered answer = AnswerOfEdges(
      kLoop, {{"talk", KindOf(Bracketing, /*sees_ends=*/false)}, {"predict", KindOf(Bracketing)}});
  EXPECT_THAT(std::string(answer.status.message()),
              HasSubstr("p:2: stage `talk`: `predict` streams back to it"));
}

// A stage that had ended early, while another went on to send to it, filled its queue and stopped the other for good.
TEST(Edges, WhatComesToAStageThatHasEndedIsDropped) {
  const auto many = [] {
    RunScript script;
    script.input_end = [](StageOutput& output) {
      for (int i = 0; i < 20 && output.Emit(TextPart{std::string(100000, 'x')}); ++i) {
      }
      output.End(OkStatus());
    };
    return script;
  };
  const auto brief = [] {
    RunScript script;
    script.part = [](StageOutput& output, const std::string&, std::string_view) {
      output.End(OkStatus());
    };
    return script;
  };
  const auto count = [] {
    RunScript script;
    auto bytes = std::make_shared<size_t>(0);
    script.part = [bytes](StageOutput&, const std::string& text, std::string_view) {
      *bytes += text.size();
    };
    script.input_end = [bytes](StageOutput& output) {
      output.Emit(TextPart{std::to_string(*bytes)});
      output.End(OkStatus());
    };
    return script;
  };
  const Answered answer = AnswerOfEdges(
      " - {name: many, factory_path: many, stream_to: relay}\n"
      " - {name: relay, factory_path: portico.pass, stream_to: [short, count]}\n"
      " - {name: short, factory_path: brief, terminal: true}\n"
      " - {name: count, factory_path: count, terminal: true}\n",
      {{"many", KindOf(many)}, {"brief", KindOf(brief)}, {"count", KindOf(count)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "2000000");
}

constexpr char kBeside[] =
    " - {name: first, factory_path: portico.pass, stream_to: [whole, bits]}\n"
    " - {name: whole, factory_path: whole, next: last}\n"
    " - {name: bits, factory_path: name, stream_to: last}\n"
    " - {name: last, factory_path: last, terminal: true";

TEST(Edges, AStreamWaitsForThePayloadAndEndsAreOfTheirSources) {
  const Answered answer = AnswerOfEdges(std::string(kBeside) + "}\n",
                                        {{"whole", MakeNaming}, {"last", KindOf(Telling)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "whole x whole end no more of whole all bits x bits end no more of bits ");
}

TEST(Edges, AStreamThatIsAcceptedEarlyDoesNotWaitForThePayload) {
  std::atomic<bool> streamed = false;
  const auto whole = [&streamed] {
    RunScript script;
    script.input_end = [&streamed](StageOutput& output) {
      EXPECT_TRUE(Becomes(streamed));
      output.Emit(TextPart{"whole "});
      output.End(OkStatus());
    };
    return script;
  };
  const auto last = [&streamed] {
    RunScript script = Telling();
    script.source_end = [&streamed](StageOutput& output, std::string_view source) {
      output.Emit(TextPart{"no more of " + std::string(source) + " "});
      streamed = true;
    };
    return script;
  };
  const Answered answer =
      AnswerOfEdges(std::string(kBeside) + ", can_accept_stream_before_payload: true}\n",
                    {{"whole", KindOf(whole)}, {"last", KindOf(last)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "bits x bits end no more of bits whole no more of whole all ");
}

TEST(Edges, AStageThatWaitsForFewerSourcesDoesNotWaitForTheOthers) {
  const auto stuck = [] {
    RunScript script;
    script.part = [](StageOutput& output, const std::string&, std::string_view) {
      output.Emit(TextPart{"stuck "});
    };
    script.input_end = [](StageOutput&) {};
    return script;
  };
  const auto last = [] {
    RunScript script = Telling();
    script.part = [](StageOutput& output, const std::string& text, std::string_view source) {
      output.Emit(TextPart{text});
      if (source == "bits") output.WaitFor({"left"});
    };
    return script;
  };
  const Answered answer = AnswerOfEdges(
      " - {name: first, factory_path: portico.pass, stream_to: [left, right, bits]}\n"
      " - {name: left, factory_path: name, next: last}\n"
      " - {name: right, factory_path: stuck, next: last}\n"
      " - {name: bits, factory_path: portico.pass, stream_to: last}\n"
      " - {name: last, factory_path: last, wait_for: [left, right],"
      " merge_fn: portico.in_order, can_accept_stream_before_payload: true,"
      " terminal: true}\n",
      {{"stuck", KindOf(stuck)}, {"last", KindOf(last)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_THAT(answer.text, HasSubstr("left x left end all "));
  EXPECT_THAT(answer.text, ::testing::Not(HasSubstr("stuck")));
}

// Sends to `left` alone, and lets only that know that it has ended.
RunScript TellingLeft() {
  RunScript script;
  script.part = [](StageOutput& output, const std::string& text, std::string_view) {
    output.EmitTo(TextPart{text}, "left");
  };
  script.input_end = [](StageOutput& output) {
    output.EndStreams({"left"});
    output.End(OkStatus());
  };
  return script;
}

TEST(Edges, AStageThatIsNotToldOfTheEndOfAStreamDoesNotRun) {
  const std::string stages =
      " - {name: first, factory_path: tell, stream_to: [left, right]}\n"
      " - {name: left, factory_path: name, terminal: true}\n"
      " - {name: right, factory_path: name, terminal: true}\n";
  const Answered answer = AnswerOfEdges(stages, {{"tell", KindOf(TellingLeft)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "left x left end ");
}

TEST(Edges, AStageThatHasBegunIsAbortedWhereItsStreamLeavesItOut) {
  std::atomic<bool> begun = false;
  std::atomic<bool> aborted = false;
  const auto tell = [&begun] {
    RunScript script = TellingLeft();
    script.part = [](StageOutput& output, const std::string& text, std::string_view) {
      output.Emit(TextPart{text});
    };
    script.input_end = [&begun](StageOutput& output) {
      EXPECT_TRUE(Becomes(begun));
      output.EndStreams({"left"});
      output.End(OkStatus());
    };
    return script;
  };
  const auto endless = [&begun, &aborted] {
    RunScript script;
    script.part = [&begun](StageOutput&, const std::string&, std::string_view) { begun = true; };
    script.input_end = [](StageOutput&) {};
    script.aborted = [&aborted] { aborted = true; };
    return script;
  };
  const Answered answer = AnswerOfEdges(
      " - {name: first, factory_path: tell, stream_to: [left, right]}\n"
      " - {name: left, factory_path: name, terminal: true}\n"
      " - {name: right, factory_path: endless, terminal: true}\n",
      {{"tell", KindOf(tell)}, {"endless", KindOf(endless)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "left x left end ");
  EXPECT_TRUE(aborted);
}

// Its end was told to the request twice, which ended without what other stages say.
TEST(Edges, AFanInBehindAnotherIsLeftOutOnceWhereNeitherGetsItsPayload) {
  const Answered answer = AnswerOfEdges(
      "  - {name: first, factory_path: name, route_fn: portico.by_task, next: think,"
      " stream_to: [left, other]}\n"
      "  - {name: think, factory_path: name, next: [left, right]}\n"
      "  - {name: left, factory_path: name, wait_for: think, merge_fn: portico.in_order,"
      " stream_to: right}\n"
      "  - {name: right, factory_path: name, wait_for: think, merge_fn: portico.in_order,"
      " terminal: true}\n"
      "  - {name: other, factory_path: name, terminal: true}\n",
      {});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "other first x other first end other end ");
}

TEST(Edges, AStreamBesideAPayloadThatNobodyChoosesStartsNothing) {
  const auto nobody = [] {
    RunScript script;
    script.input_end = [](StageOutput& output) {
      output.Choose({"other"});
      output.End(OkStatus());
    };
    return script;
  };
  const Answered answer = AnswerOfEdges(
      " - {name: first, factory_path: portico.pass, stream_to: [whole, bits]}\n"
      " - {name: whole, factory_path: nobody, next: [last, other]}\n"
      " - {name: other, factory_path: name, terminal: true}\n"
      " - {name: bits, factory_path: name, stream_to: last}\n"
      " - {name: last, factory_path: last, terminal: true}\n",
      {{"nobody", KindOf(nobody)}, {"last", KindOf(Telling)}});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "other end ");
}

// The second fan-in was passed over twice: once more for itself, and the request ended before `out` had run.
TEST(Edges, FanInsBehindEachOtherThatTheRequestDoesNotReachEndOnce) {
  const Answered answer = AnswerOfEdges(
      " - {name: first, factory_path: portico.pass, route_fn: portico.by_task,"
      " stream_to: [hear, one, out]}\n"
      " - {name: hear, factory_path: name, next: [one, two]}\n"
      " - {name: one, factory_path: name, wait_for: hear, merge_fn: portico.in_order,"
      " stream_to: two}\n"
      " - {name: two, factory_path: name, wait_for: hear, merge_fn: portico.in_order,"
      " terminal: true}\n"
      " - {name: out, factory_path: name, terminal: true}\n",
      {});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.text, "out x out end ");
}

}  // namespace
}  // namespace portico::pipeline
