// Sound → the bytes of a file or stream, as samples come.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "media/sound.h"

namespace portico::media {

enum class AudioFormat { kPcm, kWav, kMp3, kOpus, kFlac, kAac };

// "pcm", "wav", "mp3", "opus", "flac", "aac".
std::optional<AudioFormat> ParseAudioFormat(std::string_view name);
std::string_view AudioFormatName(AudioFormat format);
// "audio/mpeg"
std::string_view MediaType(AudioFormat format);

// One thread at a time.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the bytes that are ready; the first ones have the header, which nothing repeats.
  virtual Status Encode(SampleSpan samples, std::string* out) = 0;
  // Appends the rest. Once; nothing follows.
  virtual Status Finish(std::string* out) = 0;
};

// UNAVAILABLE (reason "encoder_missing") if the format's library is not installed, naming it; the
// format is never another one instead.
Status CanEncode(AudioFormat format);

// INVALID_ARGUMENT (field "sample_rate") for a rate that the format has not; else as CanEncode().
StatusOr<std::unique_ptr<Encoder>> NewEncoder(AudioFormat format, int32_t sample_rate);

}  // namespace portico::media
