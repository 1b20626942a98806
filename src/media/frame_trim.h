// Keeps a stream of MP3 or AAC frames as long as its sound.
//
// Frames of MP3 and of AAC (ADTS) cannot say which of their samples are the sound. A decoder hears `delay` samples before it, the
// last frame is filled up, and LAME adds frames behind that: at 16 kHz 77 to 108 ms of MP3 and 64 to 128 ms of AAC. So quiet is left
// out instead: up to `delay` samples where the sound begins, which keeps its timing to the sample, and where it ends the frames
// behind the one that is nearest to the end. Sound that begins at once is late by the delay.
//
// Quiet has peaks of at most -50 dBFS (kQuiet), and 30 dB (kBelow) below those of the sound: of a voice that speaks softly, the
// first syllable is not taken for the noise in front of a loud one. So a sound that begins below -50 dBFS is held until it is known
// how loud it becomes, but for no more than `look` samples behind the delay.
#pragma once

#include <algorithm>
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
    size_t look;                                   // samples behind the delay
    size_t head;                                   // bytes of a frame that tell its size
    size_t (*frame_bytes)(std::string_view head);  // 0: no frame begins there
  };
  // -50 dBFS. Noise with such peaks has about -60 dBFS, 40 dB below speech.
  static constexpr int kQuiet = 103;
  static constexpr int kBelow = 32;

  explicit FrameTrim(const Codec& codec) : codec_(codec) {}

  // What is to be encoded next, of these samples and of those that were held. Valid until the next call.
  SampleSpan Enter(SampleSpan samples);
  // Once, at the end: what is still held.
  SampleSpan Rest();
  // None has been, of some. Behind Rest().
  bool all_left_out() const { return total_ > 0 && total_ == left_out_; }

  // Looks at what the encoder has appended behind `from`. INTERNAL: these are no frames.
  Status Look(size_t from, std::string* out) { return Look(from, kAll, out); }
  // Likewise, at the end: takes away the frames that are not needed.
  Status Cut(size_t from, std::string* out) { return Look(from, Frames(), out); }

 private:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  // Of the sound as far as it is known: samples are quiet up to this.
  int Quiet() const { return std::min(kQuiet, loudest_ / kBelow); }
  // All that is held, but for what is left out.
  SampleSpan Begin();
  // These are encoded, up to the last that has come.
  SampleSpan Take(SampleSpan samples);

  Status Look(size_t from, size_t most, std::string* out);
  // Of the whole stream.
  size_t Frames() const;

  const Codec codec_;
  size_t total_ = 0;     // samples
  size_t left_out_ = 0;  // of them, at the beginning
  int loudest_ = 0;      // of them
  bool begun_ = false;   // left_out_ is final, and nothing is held any more
  Samples held_;
  size_t heard_ = 0;  // of those that are encoded, up to the last that is not quiet

  size_t frames_ = 0;      // that have begun
  size_t frame_left_ = 0;  // bytes of the last one
  std::string head_;       // of the next one
};

}  // namespace portico::media
