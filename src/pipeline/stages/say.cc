// portico.say: clauses → sound, by flite in this process.
#include "pipeline/speech/flite_voice.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/manner.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

class SayRun final : public StageRun {
 public:
  SayRun(std::shared_ptr<StageOutput> output, const FliteVoice* voice, double speed)
      : output_(std::move(output)), voice_(voice), speed_(speed) {}

  Status OnPart(Part part, std::string_view) override {
    const auto* text = std::get_if<TextPart>(&part);
    if (text == nullptr) return OkStatus();
    return voice_->Say(text->text, speed_, [this](media::SampleSpan samples) {
      AudioPart audio;
      audio.sample_rate = voice_->sample_rate();
      audio.samples.assign(samples.begin(), samples.end());
      return output_->Emit(std::move(audio));
    });
  }

  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  const std::shared_ptr<StageOutput> output_;
  const FliteVoice* voice_;
  const double speed_;
};

class SayStage final : public Stage {
 public:
  explicit SayStage(std::string voice) : voice_(std::move(voice)) {}

  Status Ready() const override { return FliteVoice::Load(voice_).status(); }
  std::vector<std::string> Voices() const override { return FliteVoice::Names(); }
  bool Answers(Task task) const override { return task == Task::kSpeech; }

  Status Check(const Request& request) const override {
    PORTICO_RETURN_IF_ERROR(CheckManner(request, /*english=*/true));
    return FliteVoice::Load(VoiceOf(request)).status();
  }

  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    // Check() has loaded it.
    return std::make_unique<SayRun>(std::move(output), *FliteVoice::Load(VoiceOf(*request)),
                                    request->speech.speed);
  }

 private:
  const std::string& VoiceOf(const Request& request) const {
    return request.speech.voice.empty() ? voice_ : request.speech.voice;
  }

  const std::string voice_;
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeSay(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"voice"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  std::string voice = "slt";
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "voice", &voice));
  return std::unique_ptr<Stage>(std::make_unique<SayStage>(std::move(voice)));
}

}  // namespace portico::pipeline
