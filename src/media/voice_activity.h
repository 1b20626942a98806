// Where somebody speaks: by energy above a noise floor that follows the room.
#pragma once

#include <cstdint>
#include <vector>

#include "media/sound.h"

namespace portico::media {

struct VoiceActivityOptions {
  int32_t sample_rate = 16000;
  double threshold = 0.5;      // 0 hears a whisper, 1 needs a shout: 3 to 15 dB above the floor
  int32_t min_speech_ms = 60;  // shorter bursts are noise
  int32_t silence_duration_ms = 500;  // of silence that end a turn
};

struct VoiceEvent {
  bool start = false;  // else the end
  int64_t sample = 0;  // since the beginning
};

// One thread at a time.
class VoiceActivity {
 public:
  explicit VoiceActivity(const VoiceActivityOptions& options);

  // Appends what begins and ends within these samples. An end is told silence_duration_ms later
  // than it was.
  void Process(SampleSpan samples, std::vector<VoiceEvent>* events);
  // Tells an open turn's end. What comes then is a new turn, if it is loud.
  void Finish(std::vector<VoiceEvent>* events);

  bool speaking() const { return speaking_; }
  int64_t position() const { return position_; }

 private:
  void Frame(double decibels, std::vector<VoiceEvent>* events);

  const VoiceActivityOptions options_;
  const int64_t frame_samples_;  // 10 ms
  double energy_ = 0;
  int64_t in_frame_ = 0;
  int64_t position_ = 0;
  double floor_;
  int32_t loud_ms_ = 0;
  int32_t quiet_ms_ = 0;
  bool speaking_ = false;
};

struct Stretch {
  int64_t begin = 0;
  int64_t end = 0;
};

// Cuts a sound into stretches of speech of at most `max_seconds`, at its silences. A stretch has a
// little silence around it. None if nobody speaks.
std::vector<Stretch> SpeechStretches(const Sound& sound, double max_seconds);

}  // namespace portico::media
