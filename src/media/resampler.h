// From one sample rate to another, as samples come.
#pragma once

#include <cstdint>
#include <vector>

#include "media/sound.h"

namespace portico::media {

// A windowed sinc (Kaiser, beta 9: what would be folded lies below -80 dB) in polyphase form, after
// J. O. Smith, "Digital Audio Resampling". Of rates whose ratio has a denominator above 512 the
// coefficients between two phases are interpolated. One thread at a time.
class Resampler {
 public:
  // Rates are above 0.
  Resampler(int32_t from, int32_t to);

  // Appends what `in` makes ready. It comes out 16 input samples late, or as many as the filter has
  // on a side.
  void Process(SampleSpan in, Samples* out);
  // Appends the rest; the whole output lasts as long as the input. Nothing follows.
  void Finish(Samples* out);

 private:
  void Produce(Samples* out, int64_t limit);

  const int64_t up_;    // to / gcd
  const int64_t down_;  // from / gcd
  int64_t half_;        // taps on a side
  int64_t phases_;
  bool exact_;                // a phase for each fraction
  std::vector<float> taps_;   // (phases_ + 1) * 2 * half_
  std::vector<float> input_;  // beginning at input sample first_
  int64_t first_;
  int64_t received_ = 0;  // input samples
  int64_t produced_ = 0;  // output samples
  int64_t whole_ = 0;     // where the next of them lies: input samples,
  int64_t fraction_ = 0;  // and so many of up_ parts of one
};

// The whole sound at another rate.
Sound Resample(Sound sound, int32_t to);

}  // namespace portico::media
