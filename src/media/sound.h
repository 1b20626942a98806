// Sound inside Portico: one channel of signed 16-bit samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace portico::media {

using Samples = std::vector<int16_t>;
using SampleSpan = std::span<const int16_t>;

struct Sound {
  int32_t sample_rate = 16000;  // samples a second
  Samples samples;

  double seconds() const {
    return static_cast<double>(samples.size()) / static_cast<double>(sample_rate);
  }
};

// The nearest sample of a value in [-1, 1]; beyond it is cut off.
inline int16_t ToSample(float value) {
  const float scaled = value * 32768.0F;
  if (!(scaled > -32768.0F)) return -32768;  // not a number, too
  if (scaled >= 32767.0F) return 32767;
  return static_cast<int16_t>(scaled < 0 ? scaled - 0.5F : scaled + 0.5F);
}

}  // namespace portico::media
