// The input_audio_buffer of a realtime session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/realtime/session_config.h"
#include "media/sound.h"
#include "media/voice_activity.h"

namespace portico::api::openai {

// On its shard. Keeps some five minutes of sound at most, and while nobody speaks only what a turn would
// begin with. A turn that voice activity finds is no longer than that: another follows it.
class InputAudio {
 public:
  static constexpr int64_t kMaxSeconds = 300;

  struct Turn {
    bool started = false;  // else it has stopped
    int64_t ms = 0;        // since the session began
    media::Samples sound;  // of one that has stopped
  };

  // Appends sound in the session's coding; with voice activity on, what it finds. False: full, which
  // is only without.
  bool Append(std::string_view bytes, const RealtimeConfig& config, std::vector<Turn>* turns);
  // Everything that is there, for a commit by hand.
  media::Samples Take();
  void Clear();
  bool empty() const { return samples_.empty(); }
  // How much has come with voice activity on.
  int64_t position_ms(const RealtimeConfig& config) const;
  bool speaking() const { return activity_ && activity_->speaking(); }
  // After a change of coding or voice activity.
  void Configure(const RealtimeConfig& config);

 private:
  void Listen(media::SampleSpan samples, const RealtimeConfig& config, std::vector<Turn>* turns);
  media::Samples Cut(int64_t begin, int64_t end);

  media::Samples samples_;
  int64_t first_ = 0;      // position of samples_[0] since the activity began
  int64_t begun_ = 0;      // position where the turn begins
  int64_t before_ms_ = 0;  // of the session before the activity began
  std::optional<media::VoiceActivity> activity_;
};

// Sound as the session's clients send it; no part of a sample alone.
bool WholeSamples(std::string_view bytes, RealtimeConfig::Coding coding);
media::Samples DecodeSound(std::string_view bytes, RealtimeConfig::Coding coding);
std::string EncodeSound(std::string_view pcm, RealtimeConfig::Coding coding);

}  // namespace portico::api::openai
