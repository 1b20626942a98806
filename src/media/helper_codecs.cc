// AAC, M4A and WebM by portico-media.
#include "media/helper_codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "media/decoder.h"
#include "media/encoders.h"
#include "media/frame_trim.h"
#include "media/helper.h"
#include "media/wav.h"

namespace portico::media {
namespace {

constexpr std::array<int32_t, 9> kAacRates = {8000,  11025, 12000, 16000, 22050,
                                              24000, 32000, 44100, 48000};
// What recognizers want; more would only be thrown away.
constexpr int32_t kDecodedRate = 16000;
constexpr size_t kMaxTail = 1 << 20;
constexpr size_t kAacFrame = 1024;  // samples; a decoder hears one before the sound

Status Bad(std::string why) { return Error(StatusCode::kInvalidArgument, std::move(why)); }

// Exit statuses of the program (media_helper/portico_media.cc).
Status Told(int status, std::string_view name, double max_seconds) {
  switch (status) {
    case 0:
      return OkStatus();
    case 10:
      return Bad(
          fmt::format("the {} file's codec is not supported; use AAC, Opus, Vorbis, MP3, "
                      "FLAC or ALAC",
                      name));
    case 11:
      return Bad(fmt::format("the {} file has no sound", name));
    case 12:
      return Bad(fmt::format("the {} audio is damaged or cut off", name));
    case 13:
      return Bad(fmt::format(
          "the audio lasts more than {:.0f} s, which is the most that is supported", max_seconds));
    case 14:
      return Bad(fmt::format("the {} file is too large", name));
    default:
      return Bad(fmt::format("the {} audio cannot be decoded within the decoder's limits", name));
  }
}

// ISO 13818-7, 6.2: the 13 bits behind the 30th.
constexpr size_t kAdtsHead = 6;
size_t AdtsFrameBytes(std::string_view head) {
  const auto byte = [head](size_t at) {
    return static_cast<size_t>(static_cast<uint8_t>(head[at]));
  };
  if (byte(0) != 0xFF || (byte(1) & 0xF6) != 0xF0) return 0;
  return (byte(3) & 3) << 11 | byte(4) << 3 | byte(5) >> 5;
}

class AacEncoder final : public Encoder {
 public:
  AacEncoder(std::unique_ptr<Helper> helper, int32_t sample_rate)
      : helper_(std::move(helper)),
        trim_({.delay = kAacFrame,
               .frame = kAacFrame,
               .look = static_cast<size_t>(sample_rate / 2),
               .head = kAdtsHead,
               .frame_bytes = AdtsFrameBytes}) {}

  Status Encode(SampleSpan samples, std::string* out) override {
    return Write(trim_.Enter(samples), out);
  }
  Status Finish(std::string* out) override {
    PORTICO_RETURN_IF_ERROR(Write(trim_.Rest(), out));
    if (trim_.all_left_out())
      PORTICO_RETURN_IF_ERROR(Write(Samples(1), out));  // a frame of silence
    const size_t before = out->size();
    PORTICO_ASSIGN_OR_RETURN(const int status, helper_->Finish(out, before + kMaxTail));
    if (status == 0) return trim_.Cut(before, out);
    return Error(StatusCode::kInternal, "the AAC encoder failed");
  }

 private:
  Status Write(SampleSpan samples, std::string* out) {
    if (samples.empty()) return OkStatus();
    bytes_.clear();
    AppendBytes(samples, &bytes_);
    const size_t before = out->size();
    PORTICO_RETURN_IF_ERROR(helper_->Write(bytes_, out));
    return trim_.Look(before, out);
  }

  const std::unique_ptr<Helper> helper_;
  std::string bytes_;
  FrameTrim trim_;
};

}  // namespace

Status CanEncodeAac() { return Helper::Installed(); }

StatusOr<std::unique_ptr<Encoder>> NewAacEncoder(int32_t sample_rate) {
  if (std::find(kAacRates.begin(), kAacRates.end(), sample_rate) == kAacRates.end()) {
    return InvalidArgument("sample_rate", fmt::format("aac has no sample rate {}; it has {}",
                                                      sample_rate, fmt::join(kAacRates, ", ")));
  }
  PORTICO_ASSIGN_OR_RETURN(auto helper, Helper::Start({"encode", fmt::format("{}", sample_rate)}));
  return std::unique_ptr<Encoder>(std::make_unique<AacEncoder>(std::move(helper), sample_rate));
}

StatusOr<Sound> DecodeByHelper(std::string_view bytes, std::string_view name,
                               const AudioLimits& limits) {
  if (const Status can = Helper::Installed(); !can.ok()) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("{} cannot be decoded: {}", name, MessageOf(can)), {},
                 "decoder_missing");
  }
  PORTICO_ASSIGN_OR_RETURN(auto helper, Helper::Start({"decode", fmt::format("{}", kDecodedRate),
                                                       fmt::format("{:.0f}", limits.max_seconds)}));
  std::string pcm;
  PORTICO_RETURN_IF_ERROR(helper->Write(bytes, &pcm));
  const size_t most =
      static_cast<size_t>((limits.max_seconds + 1) * kDecodedRate) * sizeof(int16_t) + kMaxTail;
  PORTICO_ASSIGN_OR_RETURN(const int status, helper->Finish(&pcm, most));
  PORTICO_RETURN_IF_ERROR(Told(status, name, limits.max_seconds));
  return Sound{kDecodedRate, SamplesFromBytes(pcm)};
}

}  // namespace portico::media
