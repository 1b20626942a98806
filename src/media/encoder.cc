#include "media/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "media/encoders.h"
#include "media/wav.h"

namespace portico::media {
namespace {

struct Facts {
  AudioFormat format;
  std::string_view name;
  std::string_view media_type;
};

constexpr Facts kFacts[] = {
    {AudioFormat::kPcm, "pcm", "audio/pcm"},    {AudioFormat::kWav, "wav", "audio/wav"},
    {AudioFormat::kMp3, "mp3", "audio/mpeg"},   {AudioFormat::kOpus, "opus", "audio/ogg"},
    {AudioFormat::kFlac, "flac", "audio/flac"}, {AudioFormat::kAac, "aac", "audio/aac"},
};

constexpr int32_t kMinRate = 8000;
constexpr int32_t kMaxRate = 48000;
// MPEG-1, -2 and -2.5, layer III.
constexpr std::array<int32_t, 9> kMp3Rates = {8000,  11025, 12000, 16000, 22050,
                                              24000, 32000, 44100, 48000};

class PcmEncoder final : public Encoder {
 public:
  PcmEncoder(int32_t sample_rate, bool header) : sample_rate_(sample_rate), header_(header) {}

  Status Encode(SampleSpan samples, std::string* out) override {
    PutHeader(out);
    AppendBytes(samples, out);
    return OkStatus();
  }
  Status Finish(std::string* out) override {
    PutHeader(out);
    return OkStatus();
  }

 private:
  void PutHeader(std::string* out) {
    if (!std::exchange(header_, false)) return;
    *out += WavHeader(sample_rate_, kUnknownWavBytes);
  }

  int32_t sample_rate_;
  bool header_;
};

}  // namespace

std::optional<AudioFormat> ParseAudioFormat(std::string_view name) {
  for (const Facts& facts : kFacts) {
    if (facts.name == name) return facts.format;
  }
  return std::nullopt;
}

std::string_view AudioFormatName(AudioFormat format) {
  return kFacts[static_cast<size_t>(format)].name;
}

std::string_view MediaType(AudioFormat format) {
  return kFacts[static_cast<size_t>(format)].media_type;
}

Status CanEncode(AudioFormat format) {
  Status status;
  switch (format) {
    case AudioFormat::kMp3:
      status = CanEncodeMp3();
      break;
    case AudioFormat::kOpus:
      status = CanEncodeOpus();
      break;
    case AudioFormat::kFlac:
      status = CanEncodeFlac();
      break;
    case AudioFormat::kAac:
      status = CanEncodeAac();
      break;
    default:
      return OkStatus();
  }
  if (status.ok()) return status;
  return Error(StatusCode::kUnavailable,
               fmt::format("{} cannot be encoded: {}", AudioFormatName(format), MessageOf(status)),
               "response_format", "encoder_missing");
}

StatusOr<std::unique_ptr<Encoder>> NewEncoder(AudioFormat format, int32_t sample_rate) {
  PORTICO_RETURN_IF_ERROR(CanEncode(format));
  if (sample_rate < kMinRate || sample_rate > kMaxRate) {
    return InvalidArgument("sample_rate", fmt::format("sample_rate must be in {}..{}, got {}",
                                                      kMinRate, kMaxRate, sample_rate));
  }
  if (format == AudioFormat::kMp3 &&
      std::find(kMp3Rates.begin(), kMp3Rates.end(), sample_rate) == kMp3Rates.end()) {
    return InvalidArgument("sample_rate", fmt::format("mp3 has no sample rate {}; it has {}",
                                                      sample_rate, fmt::join(kMp3Rates, ", ")));
  }
  switch (format) {
    case AudioFormat::kMp3:
      return NewMp3Encoder(sample_rate);
    case AudioFormat::kOpus:
      return NewOpusEncoder(sample_rate);
    case AudioFormat::kFlac:
      return NewFlacEncoder(sample_rate);
    case AudioFormat::kAac:
      return NewAacEncoder(sample_rate);
    default:
      return std::unique_ptr<Encoder>(
          std::make_unique<PcmEncoder>(sample_rate, format == AudioFormat::kWav));
  }
}

}  // namespace portico::media
