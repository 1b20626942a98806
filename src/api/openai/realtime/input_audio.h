// The input_audio_buffer of a realtime session.
#pragma once

#include <cstdint>
#include <memory>
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
    enum class What {
      kStarted,
      kStopped,
      // With semantic_vad: the speaker pauses; speaks on, in the same turn.
      kPaused,
      kResumed,
    };
    What what = What::kStopped;
    int64_t ms = 0;        // since the session began
    media::Samples sound;  // of one that has stopped; of one that pauses, since the pause before
  };

  // Appends sound in the session's coding; with voice activity on, what it finds. False: full, which
  // is only without.
  bool Append(std::string_view bytes, const RealtimeConfig& config, std::vector<Turn>* turns);
  // With semantic_vad: ends the turn that pauses now, if one does.
  std::optional<Turn> EndTurn(const RealtimeConfig& config);
  // Everything that is there, for a commit by hand.
  media::Samples Take();
  void Clear();
  bool empty() const { return samples_.empty(); }
  // How much has come with voice activity on.
  int64_t position_ms(const RealtimeConfig& config) const;
  // A turn goes on, be it in a pause.
  bool speaking() const { return paused_ || (activity_ && activity_->speaking()); }
  // After a change of coding or voice activity.
  void Configure(const RealtimeConfig& config);

 private:
  void Listen(media::SampleSpan samples, const RealtimeConfig& config, std::vector<Turn>* turns);
  void Pause(const RealtimeConfig& config, int64_t at, std::vector<Turn>* turns);
  media::Samples Copy(int64_t begin, int64_t end) const;
  media::Samples Cut(int64_t begin, int64_t end);
  // What is kept of the silence behind a turn.
  static int64_t Tail(const RealtimeConfig& config);

  media::Samples samples_;
  int64_t first_ = 0;              // position of samples_[0] since the activity began
  int64_t begun_ = 0;              // position where the turn begins
  int64_t piece_ = 0;              // position where what has not been told in a pause begins
  std::optional<int64_t> paused_;  // position where the pause of a turn begins
  int64_t before_ms_ = 0;          // of the session before the activity began
  std::optional<media::VoiceActivity> activity_;
};

// Sound as the session's clients send it; no part of a sample alone.
bool WholeSamples(std::string_view bytes, RealtimeConfig::Coding coding);
media::Samples DecodeSound(std::string_view bytes, RealtimeConfig::Coding coding);
// A WAV file of sound at the session's input rate.
std::shared_ptr<const std::string> SoundFile(media::SampleSpan samples,
                                             const RealtimeConfig& config);
std::string EncodeSound(std::string_view pcm, RealtimeConfig::Coding coding);

}  // namespace portico::api::openai
