// portico.decode: files → sound at one rate, in pieces of a second; text goes through.
#include <fmt/format.h>

#include "media/decoder.h"
#include "media/resampler.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

class DecodeRun final : public StageRun {
 public:
  DecodeRun(std::shared_ptr<StageOutput> output, const media::AudioLimits& limits, int32_t rate)
      : output_(std::move(output)), limits_(limits), rate_(rate) {}

  Status OnPart(Part part, std::string_view) override {
    const auto* file = std::get_if<FilePart>(&part);
    if (file == nullptr) {
      output_->Emit(std::move(part));
      return OkStatus();
    }
    auto decoded = media::DecodeAudio(*file->bytes, limits_);
    if (!decoded.ok()) {
      return Error(decoded.status().code(), std::string(MessageOf(decoded.status())), "file",
                   ReasonOf(decoded.status()));
    }
    const media::Sound sound = media::Resample(*std::move(decoded), rate_);
    const auto piece = static_cast<size_t>(rate_);
    for (size_t at = 0; at < sound.samples.size(); at += piece) {
      const size_t end = std::min(sound.samples.size(), at + piece);
      AudioPart audio;
      audio.clip = file->clip;
      audio.sample_rate = rate_;
      audio.samples.assign(sound.samples.begin() + static_cast<std::ptrdiff_t>(at),
                           sound.samples.begin() + static_cast<std::ptrdiff_t>(end));
      audio.last = end == sound.samples.size();
      if (!output_->Emit(std::move(audio))) break;
    }
    return OkStatus();
  }

  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  const std::shared_ptr<StageOutput> output_;
  const media::AudioLimits limits_;
  const int32_t rate_;
};

class DecodeStage final : public Stage {
 public:
  DecodeStage(const media::AudioLimits& limits, int32_t rate) : limits_(limits), rate_(rate) {}

  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<DecodeRun>(std::move(output), limits_, rate_);
  }

 private:
  const media::AudioLimits limits_;
  const int32_t rate_;
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeDecode(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"max_seconds", "sample_rate"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  media::AudioLimits limits;
  double rate = 16000;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "max_seconds", 1, 36000, &limits.max_seconds));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "sample_rate", 8000, 48000, &rate));
  return std::unique_ptr<Stage>(std::make_unique<DecodeStage>(limits, static_cast<int32_t>(rate)));
}

}  // namespace portico::pipeline
