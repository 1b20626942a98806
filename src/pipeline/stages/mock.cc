// portico.mock: steps of text and sound after a rule, with delays and faults, for tests of what is
// around a model. Step i is the text "w<i> " and 480 samples at 24 kHz of the constant i/100; a
// prompt with the word fail-now fails at once, one with fail-late after three steps. Other faults
// come where `fault`, `fault_after` and `fault_on` say.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <optional>
#include <thread>

#include "pipeline/stage_faults.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

constexpr auto kLatePause = std::chrono::milliseconds(100);
constexpr int32_t kRate = 24000;
constexpr size_t kStepSamples = 480;
constexpr int kLateSteps = 3;

enum class MockFault { kNone, kFail, kNever, kDie, kHang, kGarbage, kTwice, kStranger };
constexpr std::array<std::string_view, 8> kFaultNames = {"none", "fail",    "never", "die",
                                                         "hang", "garbage", "twice", "stranger"};

struct MockOptions {
  int steps = 5;
  double delay_ms = 0;
  bool text = true;
  bool audio = true;
  MockFault fault = MockFault::kNone;
  int fault_after = 0;   // steps; after the last one where there are fewer
  std::string fault_on;  // in prompts with this text only
};

class MockRun final : public StageRun {
 public:
  MockRun(std::shared_ptr<const Request> request, std::shared_ptr<StageOutput> output,
          const MockOptions& options)
      : request_(std::move(request)), output_(std::move(output)), options_(options) {}

  Status OnPart(Part part, std::string_view) override {
    if (const auto* text = std::get_if<TextPart>(&part)) prompt_ += text->text;
    if (const auto* audio = std::get_if<AudioPart>(&part)) {
      heard_seconds_ += static_cast<double>(audio->samples.size()) / audio->sample_rate;
    }
    return OkStatus();
  }

  void OnInputEnd() override {
    if (request_->chat != nullptr) prompt_ += request_->chat->messages.Dump();
    const std::optional<Status> end = Steps();
    if (end) output_->End(*end);
  }

 private:
  static Status Failed(std::string_view who) {
    return Error(StatusCode::kInternal, fmt::format("the mock stage failed as {} asked", who));
  }

  // Does what the configuration asks after so many steps. True: the work ends here, with `end`.
  bool Misbehaves(int steps, std::optional<Status>* end) {
    if (options_.fault == MockFault::kNone || steps != faulty_step_) return false;
    // What came before is on its way to the client, and not dropped with the request.
    if (steps > 0) std::this_thread::sleep_for(kLatePause);
    auto* wire = dynamic_cast<StageFaults*>(output_.get());
    switch (options_.fault) {
      case MockFault::kFail:
        *end = Failed("its configuration");
        return true;
      case MockFault::kNever:
        *end = std::nullopt;
        return true;
      case MockFault::kDie:
        _exit(1);
      case MockFault::kHang:
        raise(SIGSTOP);
        break;
      case MockFault::kGarbage:
        if (wire != nullptr) wire->SendGarbage();
        break;
      case MockFault::kTwice:
        if (wire != nullptr) wire->SendEnd();
        break;
      case MockFault::kStranger:
        if (wire != nullptr) wire->AnswerStranger();
        break;
      case MockFault::kNone:
        break;
    }
    return false;
  }

  // Nothing: the work never ends.
  std::optional<Status> Steps() {
    if (prompt_.find("fail-now") != std::string::npos) return Failed("the prompt");
    const bool faulty = prompt_.find(options_.fault_on) != std::string::npos;
    faulty_step_ = faulty ? std::min(options_.fault_after, options_.steps) : -1;
    std::optional<Status> end;
    const bool late = prompt_.find("fail-late") != std::string::npos;
    const bool chat = request_->task == Task::kChat;
    const bool hears = request_->task == Task::kTranscription;
    const double samples = static_cast<double>(kStepSamples) / request_->speech.speed;
    for (int step = 0; step < options_.steps; ++step) {
      if (late && step == kLateSteps) {
        std::this_thread::sleep_for(kLatePause);  // as above
        return Failed("the prompt");
      }
      if (Misbehaves(step, &end)) return end;
      if (options_.delay_ms > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.delay_ms));
      }
      if (options_.text && (!chat || request_->wants_text)) {
        if (!output_->Emit(TextPart{"w" + std::to_string(step) + " "})) return OkStatus();
      }
      if (options_.audio && !hears && (!chat || request_->wants_audio)) {
        AudioPart audio;
        audio.sample_rate = kRate;
        const auto value = static_cast<int16_t>(std::min(step, 100) / 100.0F * 32767);
        audio.samples.assign(static_cast<size_t>(std::lround(samples)), value);
        if (!output_->Emit(std::move(audio))) return OkStatus();
      }
    }
    if (Misbehaves(options_.steps, &end)) return end;
    if (hears) output_->Emit(ClipEndPart{0, heard_seconds_});
    // In a chat the one that writes ends the answer; there may be a voice behind it.
    if (!chat || options_.text) output_->Emit(FinishPart{"stop", kLateSteps, options_.steps});
    return OkStatus();
  }

  const std::shared_ptr<const Request> request_;
  const std::shared_ptr<StageOutput> output_;
  const MockOptions options_;
  std::string prompt_;
  int faulty_step_ = -1;
  double heard_seconds_ = 0;
};

class MockStage final : public Stage {
 public:
  explicit MockStage(const MockOptions& options) : options_(options) {}
  std::vector<std::string> Voices() const override { return {"default"}; }
  bool TakesParam(std::string_view) const override { return true; }
  bool samples() const override { return true; }
  bool Answers(Task) const override { return true; }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<MockRun>(std::move(request), std::move(output), options_);
  }

 private:
  const MockOptions options_;
};

}  // namespace

namespace {

Status ReadFault(const StageConfig& config, MockOptions* options) {
  std::string fault(kFaultNames[0]);
  double after = 0;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "fault", &fault));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "fault_after", 0, 10000, &after));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "fault_on", &options->fault_on));
  const auto name = std::find(kFaultNames.begin(), kFaultNames.end(), fault);
  if (name == kFaultNames.end()) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("factory.fault must be one of {}", fmt::join(kFaultNames, ", ")));
  }
  options->fault = static_cast<MockFault>(name - kFaultNames.begin());
  options->fault_after = static_cast<int>(after);
  if (options->fault <= MockFault::kNever || !config.process.empty()) return OkStatus();
  return Error(StatusCode::kInvalidArgument,
               fmt::format("factory.fault `{}` needs a stage with a `process`", fault));
}

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeMock(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"chunks", "delay_ms",    "text",    "audio",
                                        "fault",  "fault_after", "fault_on"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  MockOptions options;
  double steps = options.steps;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "chunks", 0, 10000, &steps));
  options.steps = static_cast<int>(steps);
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "delay_ms", 0, 60000, &options.delay_ms));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "text", &options.text));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "audio", &options.audio));
  PORTICO_RETURN_IF_ERROR(ReadFault(config, &options));
  return std::unique_ptr<Stage>(std::make_unique<MockStage>(options));
}

}  // namespace portico::pipeline
