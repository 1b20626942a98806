// Stages that send different parts to those behind them, and choose at their end who goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

using namespace std::chrono_literals;

// A text "left,right:here" chooses `left` and `right`, and sends `here` to `left` alone besides.
class ChoosingRun final : public StageRun {
 public:
  explicit ChoosingRun(std::shared_ptr<StageOutput> output) : output_(std::move(output)) {}
  Status OnPart(Part part, std::string_view) override {
    const std::vector<std::string> said = absl::StrSplit(std::get<TextPart>(part).text, ':');
    output_->Emit(TextPart{"all "});
    if (said.size() > 1) output_->EmitTo(TextPart{said[1] + " "}, "left");
    output_->Choose(absl::StrSplit(said[0], ',', absl::SkipEmpty()));
    return OkStatus();
  }
  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  const std::shared_ptr<StageOutput> output_;
};

// Says its stage's name in front of what comes.
class NamingRun final : public StageRun {
 public:
  NamingRun(std::string name, std::shared_ptr<StageOutput> output)
      : name_(std::move(name)), output_(std::move(output)) {}
  Status OnPart(Part part, std::string_view) override {
    output_->Emit(TextPart{name_ + " " + std::get<TextPart>(part).text});
    return OkStatus();
  }
  void OnInputEnd() override {
    output_->Emit(TextPart{name_ + " end "});
    output_->End(OkStatus());
  }

 private:
  const std::string name_;
  const std::shared_ptr<StageOutput> output_;
};

template <typename Make>
class MadeStage final : public Stage {
 public:
  explicit MadeStage(Make make) : make_(std::move(make)) {}
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    return make_(std::move(output));
  }

 private:
  Make make_;
};

template <typename Make>
std::unique_ptr<Stage> StageOf(Make make) {
  return std::make_unique<MadeStage<Make>>(std::move(make));
}

// What the client gets of a pipeline of these stages, in which `first` chooses.
std::string AnswerOf(const std::string& stages, std::string text) {
  Registry registry;
  Pipeline::Kinds kinds = NativeStages();
  kinds["choose"] = [](const StageConfig&) -> StatusOr<std::unique_ptr<Stage>> {
    return StageOf([](auto output) { return std::make_unique<ChoosingRun>(std::move(output)); });
  };
  kinds["name"] = [](const StageConfig& config) -> StatusOr<std::unique_ptr<Stage>> {
    return StageOf([name = config.name](auto output) {
      return std::make_unique<NamingRun>(name, std::move(output));
    });
  };
  auto config = ParsePipelineConfig("stages:\n" + stages, "p", {});
  EXPECT_TRUE(config.ok()) << config.status();
  auto pipeline = Pipeline::Start(*std::move(config), kinds, "p", &registry);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  Request request;
  request.wants_text = true;
  request.inputs.emplace_back(TextPart{std::move(text)});
  auto call = (*pipeline)->Submit(std::move(request), [] {});
  EXPECT_TRUE(call.ok()) << call.status();
  std::string answer;
  for (int i = 0; i < 12'000; ++i) {
    Call::Taken taken = (*call)->Take();
    for (const Part& part : taken.parts) answer += std::get<TextPart>(part).text;
    if (taken.ended) {
      EXPECT_TRUE(taken.status.ok()) << taken.status;
      return answer;
    }
    std::this_thread::sleep_for(5ms);
  }
  return answer + "…";
}

constexpr char kJoined[] =
    " - {name: first, factory_path: choose, next: [left, right]}\n"
    " - {name: left, factory_path: name, next: last}\n"
    " - {name: right, factory_path: name, stream_to: last}\n"
    " - {name: last, factory_path: portico.merge, wait_for: [left, right], "
    "merge_fn: portico.in_order, terminal: true}\n";

TEST(Choices, OnlyTheChosenStagesRun) {
  EXPECT_EQ(AnswerOf(kJoined, "left"), "left all left end ");
  EXPECT_EQ(AnswerOf(kJoined, "right"), "right all right end ");
  EXPECT_EQ(AnswerOf(kJoined, "left,right"), "left all left end right all right end ");
}

TEST(Choices, APartForOneStageIsNotForTheOthers) {
  EXPECT_EQ(AnswerOf(kJoined, "left,right:here"),
            "left all left here left end right all right end ");
  EXPECT_EQ(AnswerOf(kJoined, "right:here"), "right all right end ");
}

TEST(Choices, ARequestThatNobodyIsChosenForEnds) {
  EXPECT_EQ(AnswerOf(kJoined, ""), "");
  EXPECT_EQ(AnswerOf(" - {name: first, factory_path: choose, next: [left, right]}\n"
                     " - {name: left, factory_path: name, terminal: true}\n"
                     " - {name: right, factory_path: name, terminal: true}\n",
                     ""),
            "");
}

TEST(Choices, StagesThatAreStreamedToAreAlwaysChosen) {
  const std::string stages =
      " - {name: first, factory_path: choose, next: [right], stream_to: [left]}\n"
      " - {name: left, factory_path: name, terminal: true}\n"
      " - {name: right, factory_path: name, terminal: true}\n";
  EXPECT_EQ(AnswerOf(stages, ""), "left all left end ");
  EXPECT_EQ(AnswerOf(stages, "nobody"), "left all left end ");
}

}  // namespace
}  // namespace portico::pipeline
