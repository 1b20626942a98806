// portico.mock: steps of text and sound after a rule, with delays and faults, for tests of what is
// around a model. Step i is the text "w<i> " and 480 samples at 24 kHz of the constant i/100; a
// prompt with the word fail-now fails at once, one with fail-late after three steps.
#include <chrono>
#include <cmath>
#include <thread>

#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

constexpr auto kLatePause = std::chrono::milliseconds(100);
constexpr int32_t kRate = 24000;
constexpr size_t kStepSamples = 480;
constexpr int kLateSteps = 3;

struct MockOptions {
  int steps = 5;
  double delay_ms = 0;
  bool text = true;
  bool audio = true;
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
    output_->End(Steps());
  }

 private:
  Status Steps() {
    const auto failed = [] {
      return Error(StatusCode::kInternal, "the mock stage failed as the prompt asked");
    };
    if (prompt_.find("fail-now") != std::string::npos) return failed();
    const bool late = prompt_.find("fail-late") != std::string::npos;
    const bool chat = request_->task == Task::kChat;
    const bool hears = request_->task == Task::kTranscription;
    const double samples = static_cast<double>(kStepSamples) / request_->speech.speed;
    for (int step = 0; step < options_.steps; ++step) {
      if (late && step == kLateSteps) {
        // What came before is on its way to the client, and not dropped with the request.
        std::this_thread::sleep_for(kLatePause);
        return failed();
      }
      if (options_.delay_ms > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.delay_ms));
      }
      if (options_.text && (!chat || request_->wants_text)) {
        if (!output_->Emit(TextPart{"w" + std::to_string(step) + " "})) return OkStatus();
      }
      if (options_.audio && !hears && (!chat || request_->wants_audio)) {
        AudioPart audio;
        audio.sample_rate = kRate;
        const auto value = static_cast<int16_t>(step / 100.0F * 32767);
        audio.samples.assign(static_cast<size_t>(std::lround(samples)), value);
        if (!output_->Emit(std::move(audio))) return OkStatus();
      }
    }
    if (hears) output_->Emit(ClipEndPart{0, heard_seconds_});
    // In a chat the one that writes ends the answer; there may be a voice behind it.
    if (!chat || options_.text) output_->Emit(FinishPart{"stop", kLateSteps, options_.steps});
    return OkStatus();
  }

  const std::shared_ptr<const Request> request_;
  const std::shared_ptr<StageOutput> output_;
  const MockOptions options_;
  std::string prompt_;
  double heard_seconds_ = 0;
};

class MockStage final : public Stage {
 public:
  explicit MockStage(const MockOptions& options) : options_(options) {}
  std::vector<std::string> Voices() const override { return {"default"}; }
  bool TakesParam(std::string_view) const override { return true; }
  bool samples() const override { return true; }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<MockRun>(std::move(request), std::move(output), options_);
  }

 private:
  const MockOptions options_;
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeMock(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"chunks", "delay_ms", "text", "audio"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  MockOptions options;
  double steps = options.steps;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "chunks", 0, 10000, &steps));
  options.steps = static_cast<int>(steps);
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "delay_ms", 0, 60000, &options.delay_ms));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "text", &options.text));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "audio", &options.audio));
  return std::unique_ptr<Stage>(std::make_unique<MockStage>(options));
}

}  // namespace portico::pipeline
