// Keeps a stream of MP3 or AAC frames as long as its sound.
//
// Frames of MP3 and of AAC (ADTS) cannot say which of their samples are the sound. A decoder hears `delay` samples before it, the
// last frame is filled up, and LAME adds frames behind that: at 16 kHz 77 to 108 ms of MP3 and 64 to 128 ms of AAC. So quiet is left
// out instead: up to `delay` samples where the sound begins, which keeps its timing to the sample, and where it ends the frames
// behind the one that is nearest to the end. What can be heard is always encoded; sound that begins at once is late by the delay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/status.h"
#include "media/sound.h"

namespace portico::media {

// One thread at a time. What it does depends on the samples, not on how many come at a time.
class FrameTrim {
 public:
  struct Codec {
    size_t delay;                                  // samples that a decoder hears before the sound
    size_t frame;                                  // samples of one
    size_t head;                                   // bytes of a frame that tell its size
    size_t (*frame_bytes)(std::string_view head);  // 0: no frame begins there
  };
  // -50 dBFS. Noise with such peaks has about -60 dBFS, 40 dB below speech.
  static constexpr int16_t kQuiet = 103;

  explicit FrameTrim(const Codec& codec) : codec_(codec) {}

  // Those of the next samples that are to be encoded.
  SampleSpan Enter(SampleSpan samples);
  // None has been, of some.
  bool all_left_out() const { return total_ > 0 && total_ == left_out_; }

  // Looks at what the encoder has appended behind `from`. INTERNAL: these are no frames.
  Status Look(size_t from, std::string* out) { return Look(from, kAll, out); }
  // Likewise, at the end: takes away the frames that are not needed.
  Status Cut(size_t from, std::string* out) { return Look(from, Frames(), out); }

 private:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  Status Look(size_t from, size_t most, std::string* out);
  // Of the whole stream.
  size_t Frames() const;

  const Codec codec_;
  size_t total_ = 0;     // samples
  size_t left_out_ = 0;  // of them, at the beginning
  bool begun_ = false;
  size_t heard_ = 0;  // of those that are encoded, up to the last that is not quiet

  size_t frames_ = 0;      // that have begun
  size_t frame_left_ = 0;  // bytes of the last one
  std::string head_;       // of the next one
};

}  // namespace portico::media
