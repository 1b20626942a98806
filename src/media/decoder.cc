// MP3, FLAC and Ogg by libsndfile (LGPL), which reads some thirty formats; only those that clients
// use are let through to it.
#include "media/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "media/flac_end.h"
#include "media/helper_codecs.h"
#include "media/mp3_end.h"
#include "media/ogg_end.h"
#include "media/shared_library.h"

namespace portico::media {
namespace {

// sndfile.h
struct SndFile;
struct SndInfo {
  int64_t frames;
  int samplerate;
  int channels;
  int format;
  int sections;
  int seekable;
};
struct VirtualIo {
  int64_t (*get_filelen)(void*);
  int64_t (*seek)(int64_t, int, void*);
  int64_t (*read)(void*, int64_t, void*);
  int64_t (*write)(const void*, int64_t, void*);
  int64_t (*tell)(void*);
};
constexpr int kReadMode = 0x10;
constexpr int64_t kUnknownFrames = INT64_MAX;  // SF_COUNT_MAX
constexpr int kRounded = 100;                  // of a second: what a number may be off

struct SndLibrary {
  SndFile* (*open_virtual)(VirtualIo*, int, SndInfo*, void*);
  int64_t (*readf_float)(SndFile*, float*, int64_t);
  int (*close)(SndFile*);
};

StatusOr<SndLibrary> LoadSnd() {
  PORTICO_ASSIGN_OR_RETURN(const SharedLibrary library,
                           SharedLibrary::Load("libsndfile.so.1", "libsndfile1"));
  SndLibrary snd{};
  PORTICO_RETURN_IF_ERROR(library.Bind("sf_open_virtual", &snd.open_virtual));
  PORTICO_RETURN_IF_ERROR(library.Bind("sf_readf_float", &snd.readf_float));
  PORTICO_RETURN_IF_ERROR(library.Bind("sf_close", &snd.close));
  return snd;
}

const StatusOr<SndLibrary>& Library() {
  static const auto* library = new StatusOr<SndLibrary>(LoadSnd());
  return *library;
}

// A file in memory.
struct Memory {
  std::string_view bytes;
  int64_t at = 0;

  static int64_t Size(void* self) {
    return static_cast<int64_t>(static_cast<Memory*>(self)->bytes.size());
  }
  static int64_t Seek(int64_t offset, int whence, void* self) {
    auto* memory = static_cast<Memory*>(self);
    const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory->at : Size(self);
    memory->at = std::clamp<int64_t>(from + offset, 0, Size(self));
    return memory->at;
  }
  static int64_t Read(void* out, int64_t wanted, void* self) {
    auto* memory = static_cast<Memory*>(self);
    const int64_t count = std::clamp<int64_t>(wanted, 0, Size(self) - memory->at);
    std::memcpy(out, memory->bytes.data() + memory->at, static_cast<size_t>(count));
    memory->at += count;
    return count;
  }
  static int64_t Tell(void* self) { return static_cast<Memory*>(self)->at; }
};

constexpr int64_t kBlockFrames = 4096;

Status Bad(std::string why) { return Error(StatusCode::kInvalidArgument, std::move(why)); }

// The format's name, or empty if it is none that is let through.
std::string_view NameOf(std::string_view bytes) {
  if (bytes.starts_with("fLaC")) return "FLAC";
  if (bytes.starts_with("OggS")) return "Ogg";
  if (bytes.starts_with("ID3")) return "MP3";
  if (bytes.size() >= 2 && static_cast<uint8_t>(bytes[0]) == 0xFF &&
      (static_cast<uint8_t>(bytes[1]) & 0xE6) == 0xE2) {
    return "MP3";  // a frame of layer III begins
  }
  return {};
}

// What libav reads, in a process of its own.
std::string_view NameForHelper(std::string_view bytes) {
  if (bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp") return "M4A";
  if (bytes.starts_with("\x1A\x45\xDF\xA3")) return "WebM";
  if (bytes.size() >= 2 && static_cast<uint8_t>(bytes[0]) == 0xFF &&
      (static_cast<uint8_t>(bytes[1]) & 0xF6) == 0xF0) {
    return "AAC";
  }
  return {};
}

StatusOr<Sound> ReadAll(const SndLibrary& library, SndFile* file, const SndInfo& info,
                        std::string_view name, const AudioLimits& limits) {
  Sound sound;
  sound.sample_rate = info.samplerate;
  const auto most = static_cast<size_t>(limits.max_seconds * info.samplerate);
  const auto channels = static_cast<size_t>(info.channels);
  std::vector<float> block(static_cast<size_t>(kBlockFrames) * channels);
  int64_t frames = 0;
  while ((frames = library.readf_float(file, block.data(), kBlockFrames)) > 0) {
    for (size_t i = 0; i < static_cast<size_t>(frames); ++i) {
      float sum = 0;
      for (size_t channel = 0; channel < channels; ++channel) sum += block[i * channels + channel];
      sound.samples.push_back(ToSample(sum / static_cast<float>(channels)));
    }
    if (sound.samples.size() > most) {
      return Bad(
          fmt::format("the audio lasts more than {:.0f} s, which is the most that is "
                      "supported",
                      limits.max_seconds));
    }
  }
  if (sound.samples.empty()) return Bad(fmt::format("the {} audio has no samples", name));
  // FLAC's head tells the number; that of the others is an estimate. A resampler that writes to a
  // pipe tells it before it has rounded.
  if (name == "FLAC" && info.frames != kUnknownFrames &&
      static_cast<int64_t>(sound.samples.size()) + info.samplerate / kRounded < info.frames) {
    return Bad("the FLAC audio is cut off: it has less sound than its head claims");
  }
  return sound;
}

}  // namespace

std::string_view AudioContainer(std::string_view bytes) {
  if (IsWav(bytes)) return "WAV";
  const std::string_view name = NameOf(bytes);
  return name.empty() ? NameForHelper(bytes) : name;
}

StatusOr<Sound> DecodeAudio(std::string_view bytes, const AudioLimits& limits) {
  if (bytes.empty()) return Bad("the audio is empty");
  if (IsWav(bytes)) return ReadWav(bytes, limits);
  const std::string_view name = NameOf(bytes);
  if (name.empty()) {
    const std::string_view other = NameForHelper(bytes);
    if (!other.empty()) return DecodeByHelper(bytes, other, limits);
    return Bad("the audio's format is not known; use WAV, MP3, FLAC, Ogg, M4A, WebM or AAC");
  }
  if ((name == "Ogg" && OggIsCut(bytes)) || (name == "MP3" && Mp3IsCut(bytes))) {
    return Bad(fmt::format("the {} audio is cut off", name));
  }
  const auto& library = Library();
  if (!library.ok()) {
    return Error(StatusCode::kUnavailable,
                 fmt::format("{} cannot be decoded: {}", name, MessageOf(library.status())), {},
                 "decoder_missing");
  }
  Memory memory{bytes};
  VirtualIo io{Memory::Size, Memory::Seek, Memory::Read, nullptr, Memory::Tell};
  SndInfo info{};
  SndFile* file = library->open_virtual(&io, kReadMode, &info, &memory);
  if (file == nullptr) return Bad(fmt::format("the {} audio is damaged or cut off", name));
  struct Closer {
    const SndLibrary& library;
    SndFile* file;
    ~Closer() { library.close(file); }
  } closer{*library, file};
  if (info.channels < 1 || info.channels > limits.max_channels) {
    return Bad(fmt::format("the {} audio has {} channels; 1 to {} are supported", name,
                           info.channels, limits.max_channels));
  }
  if (info.samplerate < limits.min_rate || info.samplerate > limits.max_rate) {
    return Bad(fmt::format("the {} audio's sample rate is {}; {} to {} are supported", name,
                           info.samplerate, limits.min_rate, limits.max_rate));
  }
  auto sound = ReadAll(*library, file, info, name, limits);
  const bool told = info.frames != kUnknownFrames && info.frames != 0;  // how long it is
  if (sound.ok() && name == "FLAC" && !told && FlacEndsWithinFrame(bytes)) {
    return Bad("the FLAC audio is cut off within a frame");
  }
  return sound;
}

}  // namespace portico::media
