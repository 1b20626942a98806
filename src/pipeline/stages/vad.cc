// portico.vad: makes silent what is no speech, so that a recognizer behind it hears words and no
// noise; times stay as they are. A clip in which nobody speaks ends the request where the stage is
// told to `require` speech.
#include <algorithm>

#include "media/voice_activity.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

// What is kept before it is looked at, and how long a stretch is at most.
constexpr double kWindowSeconds = 30;

class VadRun final : public StageRun {
 public:
  VadRun(std::shared_ptr<StageOutput> output, bool require)
      : output_(std::move(output)), require_(require) {}

  Status OnPart(Part part, std::string_view) override {
    auto* audio = std::get_if<AudioPart>(&part);
    if (audio == nullptr) {
      output_->Emit(std::move(part));
      return OkStatus();
    }
    sound_.sample_rate = audio->sample_rate;
    sound_.samples.insert(sound_.samples.end(), audio->samples.begin(), audio->samples.end());
    if (!audio->last && sound_.seconds() < kWindowSeconds) return OkStatus();
    Send(audio->clip, audio->last);
    if (audio->last && require_ && !heard_) {
      return InvalidArgument("file", "the audio contains no speech");
    }
    if (audio->last) heard_ = false;
    return OkStatus();
  }

  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  void Send(int32_t clip, bool last) {
    const std::vector<media::Stretch> stretches = media::SpeechStretches(sound_, kWindowSeconds);
    heard_ = heard_ || !stretches.empty();
    int64_t at = 0;
    const auto silence = [this, &at](int64_t end) {
      std::fill(sound_.samples.begin() + at, sound_.samples.begin() + end, int16_t{0});
    };
    for (const media::Stretch& stretch : stretches) {
      if (stretch.begin > at) silence(stretch.begin);
      at = std::max(at, stretch.end);
    }
    silence(static_cast<int64_t>(sound_.samples.size()));
    AudioPart audio;
    audio.clip = clip;
    audio.sample_rate = sound_.sample_rate;
    audio.samples = std::move(sound_.samples);
    audio.last = last;
    sound_.samples.clear();
    output_->Emit(std::move(audio));
  }

  const std::shared_ptr<StageOutput> output_;
  const bool require_;
  media::Sound sound_;
  bool heard_ = false;  // in this clip
};

class VadStage final : public Stage {
 public:
  explicit VadStage(bool require) : require_(require) {}
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<VadRun>(std::move(output), require_);
  }

 private:
  const bool require_;
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeVad(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"require"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  bool require = false;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "require", &require));
  return std::unique_ptr<Stage>(std::make_unique<VadStage>(require));
}

}  // namespace portico::pipeline
