// RIFF/WAVE files: written with a header that may come before its data is known, read from bytes
// that may lie in theirs (Microsoft's and IBM's "Multimedia Programming Interface", 1991; RFC 2361).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "media/sound.h"

namespace portico::media {

// Of a stream whose length is not known: readers take what comes (ffmpeg, browsers, sox).
inline constexpr uint32_t kUnknownWavBytes = 0xFFFFFFFF;
inline constexpr size_t kWavHeaderBytes = 44;

// The header of one channel of 16-bit samples. `data_bytes` may be kUnknownWavBytes.
std::string WavHeader(int32_t sample_rate, uint32_t data_bytes);

// Puts the true sizes into a file that begins with WavHeader(…, kUnknownWavBytes).
void SetWavSizes(std::string* file);

struct AudioLimits {
  double max_seconds = 3600;
  int32_t max_channels = 8;
  int32_t min_rate = 4000;
  int32_t max_rate = 192000;
};

// True if the bytes begin as a WAVE file does.
bool IsWav(std::string_view bytes);

// PCM of 8, 16, 24 and 32 bits, 32- and 64-bit floats, A-law and mu-law; channels are averaged. A
// data chunk of unknown size gives what is there; files that are cut off are refused.
// INVALID_ARGUMENT (no field) tells what is wrong.
StatusOr<Sound> ReadWav(std::string_view bytes, const AudioLimits& limits);

// The samples of G.711 bytes.
Samples DecodeMuLaw(std::string_view bytes);
Samples DecodeALaw(std::string_view bytes);
std::string EncodeMuLaw(SampleSpan samples);
std::string EncodeALaw(SampleSpan samples);

// Little-endian 16-bit samples; a last odd byte is dropped.
Samples SamplesFromBytes(std::string_view bytes);
void AppendBytes(SampleSpan samples, std::string* out);

}  // namespace portico::media
