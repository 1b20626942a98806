// portico.encode: sound → the bytes of the format that the request wants.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "media/encoder.h"
#include "media/resampler.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {
namespace {

// Samples a second that voices have. What says less, by mistake, would take thousands of times its memory at the rate of
// the answer.
constexpr int32_t kLowestVoiceRate = 4000;
constexpr int32_t kHighestVoiceRate = 192000;

class EncodeRun final : public StageRun {
 public:
  EncodeRun(std::shared_ptr<StageOutput> output, const SpeechOptions& options)
      : output_(std::move(output)), options_(options) {}

  Status OnPart(Part part, std::string_view) override {
    const auto* audio = std::get_if<AudioPart>(&part);
    if (std::holds_alternative<FinishPart>(part)) output_->Emit(std::move(part));
    if (audio == nullptr) return OkStatus();
    if (audio->sample_rate < kLowestVoiceRate || audio->sample_rate > kHighestVoiceRate) {
      return Error(StatusCode::kInternal,
                   fmt::format("the voice has {} samples a second; {} to {} can be encoded",
                               audio->sample_rate, kLowestVoiceRate, kHighestVoiceRate));
    }
    if (encoder_ == nullptr) {
      rate_ = options_.sample_rate > 0 ? options_.sample_rate : audio->sample_rate;
      from_ = audio->sample_rate;
      PORTICO_ASSIGN_OR_RETURN(encoder_, media::NewEncoder(options_.format, rate_));
      resampler_.emplace(from_, rate_);
    }
    if (audio->sample_rate != from_) {
      return Error(StatusCode::kInternal, "the voice's sample rate has changed");
    }
    media::Samples samples;
    resampler_->Process(audio->samples, &samples);
    return Send(samples, false);
  }

  void OnInputEnd() override {
    Status status = OkStatus();
    if (encoder_ != nullptr) {
      media::Samples samples;
      resampler_->Finish(&samples);
      status = Send(samples, true);
    }
    output_->End(std::move(status));
  }

 private:
  Status Send(const media::Samples& samples, bool last) {
    EncodedPart part;
    PORTICO_RETURN_IF_ERROR(encoder_->Encode(samples, &part.bytes));
    if (last) PORTICO_RETURN_IF_ERROR(encoder_->Finish(&part.bytes));
    part.sample_rate = rate_;
    samples_ += samples.size();
    if (part.bytes.empty()) return OkStatus();  // they come with the next
    part.seconds = static_cast<double>(std::exchange(samples_, 0)) / rate_;
    output_->Emit(std::move(part));
    return OkStatus();
  }

  const std::shared_ptr<StageOutput> output_;
  const SpeechOptions options_;
  int32_t rate_ = 0;
  int32_t from_ = 0;
  size_t samples_ = 0;  // that no part has told of
  std::unique_ptr<media::Encoder> encoder_;
  std::optional<media::Resampler> resampler_;
};

class EncodeStage final : public Stage {
 public:
  Status Check(const Request& request) const override {
    constexpr int32_t kAnyRate = 16000;
    const int32_t rate = request.speech.sample_rate;
    return media::NewEncoder(request.speech.format, rate > 0 ? rate : kAnyRate).status();
  }
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<EncodeRun>(std::move(output), request->speech);
  }
};

// What comes goes on: a terminal of a graph with several.
class PassRun final : public StageRun {
 public:
  explicit PassRun(std::shared_ptr<StageOutput> output) : output_(std::move(output)) {}
  Status OnPart(Part part, std::string_view) override {
    output_->Emit(std::move(part));
    return OkStatus();
  }
  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  const std::shared_ptr<StageOutput> output_;
};

class PassStage final : public Stage {
 public:
  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request>,
                                  std::shared_ptr<StageOutput> output) override {
    return std::make_unique<PassRun>(std::move(output));
  }
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeEncode(const StageConfig& config) {
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, {}));
  return std::unique_ptr<Stage>(std::make_unique<EncodeStage>());
}

StatusOr<std::unique_ptr<Stage>> MakePass(const StageConfig& config) {
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, {}));
  return std::unique_ptr<Stage>(std::make_unique<PassStage>());
}

// A fan-in that does nothing else: the coordinator gives it the parts in the order of `merge_fn`.
StatusOr<std::unique_ptr<Stage>> MakeMerge(const StageConfig& config) {
  if (config.wait_for.empty()) {
    return Error(StatusCode::kInvalidArgument, "portico.merge needs `wait_for` and `merge_fn`");
  }
  return MakePass(config);
}

}  // namespace portico::pipeline
