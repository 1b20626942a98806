#include "media/wav.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "media/g711.h"

namespace portico::media {
namespace {

constexpr uint16_t kPcm = 1;
constexpr uint16_t kFloat = 3;
constexpr uint16_t kALaw = 6;
constexpr uint16_t kMuLaw = 7;
constexpr uint16_t kExtensible = 0xFFFE;
constexpr size_t kRiffHead = 12;
constexpr size_t kChunkHead = 8;
// Programs that write to a pipe claim the largest size of 31 or 32 bits, less their header or
// rounded down (ffmpeg, sox); no file that clients send is as large.
constexpr size_t kSmallestUnknownSize = 0x7FFF0000;
// Recorders exist that count the header as sound; so little less is no cut.
constexpr size_t kMiscounted = kWavHeaderBytes;

Status Bad(std::string why) { return Error(StatusCode::kInvalidArgument, std::move(why)); }

uint32_t Read(std::string_view bytes, size_t at, size_t width) {
  uint32_t value = 0;
  for (size_t i = 0; i < width; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

void Append(uint32_t value, size_t width, std::string* out) {
  for (size_t i = 0; i < width; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

struct Form {
  uint16_t tag = 0;
  uint16_t channels = 0;
  uint32_t rate = 0;
  uint16_t bits = 0;

  size_t sample_bytes() const { return bits / 8U; }
  size_t frame_bytes() const { return sample_bytes() * channels; }
};

StatusOr<Form> ReadForm(std::string_view chunk, const AudioLimits& limits) {
  if (chunk.size() < 16) return Bad("the WAV file's format chunk is cut off");
  Form form;
  form.tag = static_cast<uint16_t>(Read(chunk, 0, 2));
  form.channels = static_cast<uint16_t>(Read(chunk, 2, 2));
  form.rate = Read(chunk, 4, 4);
  form.bits = static_cast<uint16_t>(Read(chunk, 14, 2));
  // The first two bytes of the sub-format's GUID are the tag.
  if (form.tag == kExtensible && chunk.size() >= 26) {
    form.tag = static_cast<uint16_t>(Read(chunk, 24, 2));
  }
  const bool known = (form.tag == kPcm &&
                      (form.bits == 8 || form.bits == 16 || form.bits == 24 || form.bits == 32)) ||
                     (form.tag == kFloat && (form.bits == 32 || form.bits == 64)) ||
                     ((form.tag == kALaw || form.tag == kMuLaw) && form.bits == 8);
  if (!known) {
    return Bad(
        fmt::format("a WAV file of format {} with {} bits is not supported", form.tag, form.bits));
  }
  if (form.channels < 1 || form.channels > limits.max_channels) {
    return Bad(fmt::format("the WAV file has {} channels; 1 to {} are supported", form.channels,
                           limits.max_channels));
  }
  if (form.rate < static_cast<uint32_t>(limits.min_rate) ||
      form.rate > static_cast<uint32_t>(limits.max_rate)) {
    return Bad(fmt::format("the WAV file's sample rate is {}; {} to {} are supported", form.rate,
                           limits.min_rate, limits.max_rate));
  }
  const size_t frame_bytes = Read(chunk, 12, 2);
  if (frame_bytes != form.frame_bytes()) {
    return Bad(
        fmt::format("the WAV file's frames have {} bytes, and {} channels of {} bits have {}",
                    frame_bytes, form.channels, form.bits, form.frame_bytes()));
  }
  return form;
}

// One value in [-1, 1].
float ReadSample(const Form& form, std::string_view bytes, size_t at) {
  switch (form.tag) {
    case kALaw:
      return static_cast<float>(kALawSamples[static_cast<uint8_t>(bytes[at])]) / 32768.0F;
    case kMuLaw:
      return static_cast<float>(kMuLawSamples[static_cast<uint8_t>(bytes[at])]) / 32768.0F;
    case kFloat: {
      if (form.bits == 32) return std::bit_cast<float>(Read(bytes, at, 4));
      const uint64_t low = Read(bytes, at, 4);
      const uint64_t high = Read(bytes, at + 4, 4);
      return static_cast<float>(std::bit_cast<double>(low | (high << 32)));
    }
    default:
      if (form.bits == 8) return (static_cast<float>(Read(bytes, at, 1)) - 128.0F) / 128.0F;
      // The highest byte carries the sign.
      const uint32_t value = Read(bytes, at, form.sample_bytes()) << (32 - form.bits);
      return static_cast<float>(static_cast<int32_t>(value)) / 2147483648.0F;
  }
}

StatusOr<Sound> ReadData(const Form& form, std::string_view data, const AudioLimits& limits) {
  const size_t frames = data.size() / form.frame_bytes();
  if (frames == 0) return Bad("the audio has no samples");
  if (static_cast<double>(frames) > limits.max_seconds * form.rate) {
    return Bad(fmt::format("the audio lasts {:.0f} s; at most {:.0f} s are supported",
                           static_cast<double>(frames) / form.rate, limits.max_seconds));
  }
  Sound sound;
  sound.sample_rate = static_cast<int32_t>(form.rate);
  if (form.tag == kPcm && form.bits == 16 && form.channels == 1) {
    sound.samples = SamplesFromBytes(data);
    return sound;
  }
  sound.samples.reserve(frames);
  for (size_t frame = 0; frame < frames; ++frame) {
    float sum = 0;
    for (size_t channel = 0; channel < form.channels; ++channel) {
      sum += ReadSample(form, data, frame * form.frame_bytes() + channel * form.sample_bytes());
    }
    sound.samples.push_back(ToSample(sum / static_cast<float>(form.channels)));
  }
  return sound;
}

}  // namespace

std::string WavHeader(int32_t sample_rate, uint32_t data_bytes) {
  const auto rate = static_cast<uint32_t>(sample_rate);
  std::string out;
  out.reserve(kWavHeaderBytes);
  out += "RIFF";
  Append(data_bytes == kUnknownWavBytes ? kUnknownWavBytes : data_bytes + 36, 4, &out);
  out += "WAVEfmt ";
  Append(16, 4, &out);
  Append(kPcm, 2, &out);
  Append(1, 2, &out);
  Append(rate, 4, &out);
  Append(rate * 2, 4, &out);
  Append(2, 2, &out);
  Append(16, 2, &out);
  out += "data";
  Append(data_bytes, 4, &out);
  return out;
}

void SetWavSizes(std::string* file) {
  if (file->size() < kWavHeaderBytes) return;
  const auto data = static_cast<uint32_t>(file->size() - kWavHeaderBytes);
  std::string size;
  Append(data + 36, 4, &size);
  file->replace(4, 4, size);
  size.clear();
  Append(data, 4, &size);
  file->replace(40, 4, size);
}

bool IsWav(std::string_view bytes) {
  return bytes.size() >= kRiffHead && bytes.substr(0, 4) == "RIFF" && bytes.substr(8, 4) == "WAVE";
}

StatusOr<Sound> ReadWav(std::string_view bytes, const AudioLimits& limits) {
  if (!IsWav(bytes)) return Bad("the audio is not a WAV file");
  const size_t claimed_file = Read(bytes, 4, 4);
  std::optional<Form> form;
  for (size_t at = kRiffHead; at + kChunkHead <= bytes.size();) {
    const std::string_view name = bytes.substr(at, 4);
    const size_t claimed = Read(bytes, at + 4, 4);
    const std::string_view chunk = bytes.substr(at + kChunkHead, claimed);
    if (name == "fmt ") {
      PORTICO_ASSIGN_OR_RETURN(form, ReadForm(chunk, limits));
    } else if (name == "data") {
      if (!form) return Bad("the WAV file's data comes before its format");
      // Others leave 0 where the size would be, and claim no file behind it.
      if (claimed == 0 && (claimed_file <= at || claimed_file >= kSmallestUnknownSize)) {
        return ReadData(*form, bytes.substr(at + kChunkHead), limits);
      }
      if (claimed > chunk.size() + kMiscounted && claimed < kSmallestUnknownSize) {
        return Bad(fmt::format(
            "the WAV file is cut off: its header claims {} bytes of sound and {} are there",
            claimed, chunk.size()));
      }
      return ReadData(*form, chunk, limits);
    }
    at += kChunkHead + claimed + (claimed & 1U);
  }
  return Bad("the WAV file is cut off before its data");
}

Samples DecodeMuLaw(std::string_view bytes) {
  Samples samples;
  samples.reserve(bytes.size());
  for (const char byte : bytes) samples.push_back(kMuLawSamples[static_cast<uint8_t>(byte)]);
  return samples;
}

Samples DecodeALaw(std::string_view bytes) {
  Samples samples;
  samples.reserve(bytes.size());
  for (const char byte : bytes) samples.push_back(kALawSamples[static_cast<uint8_t>(byte)]);
  return samples;
}

std::string EncodeMuLaw(SampleSpan samples) {
  std::string bytes;
  bytes.reserve(samples.size());
  for (const int16_t sample : samples) bytes.push_back(static_cast<char>(ToMuLaw(sample)));
  return bytes;
}

std::string EncodeALaw(SampleSpan samples) {
  std::string bytes;
  bytes.reserve(samples.size());
  for (const int16_t sample : samples) bytes.push_back(static_cast<char>(ToALaw(sample)));
  return bytes;
}

Samples SamplesFromBytes(std::string_view bytes) {
  Samples samples(bytes.size() / 2);
  if constexpr (std::endian::native == std::endian::little) {
    if (!samples.empty()) std::memcpy(samples.data(), bytes.data(), samples.size() * 2);
  } else {
    for (size_t i = 0; i < samples.size(); ++i) {
      samples[i] = static_cast<int16_t>(Read(bytes, 2 * i, 2));
    }
  }
  return samples;
}

void AppendBytes(SampleSpan samples, std::string* out) {
  if constexpr (std::endian::native == std::endian::little) {
    out->append(reinterpret_cast<const char*>(samples.data()), samples.size() * 2);
  } else {
    for (const int16_t sample : samples) Append(static_cast<uint16_t>(sample), 2, out);
  }
}

}  // namespace portico::media
