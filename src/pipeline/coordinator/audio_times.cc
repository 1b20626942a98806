#include "pipeline/coordinator/audio_times.h"

#include <algorithm>
#include <string>
#include <vector>

namespace portico::pipeline {
namespace {

// A day; beyond it is a stage's mistake.
constexpr double kLongestPiece = 86400;

std::vector<double> FactorBounds() { return {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.5, 2, 5}; }
// 0.1 s is what a player commonly buffers.
std::vector<double> UnderrunBounds() { return {0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30}; }

}  // namespace

AudioMetrics::AudioMetrics(Registry* registry, std::string_view task)
    : first(registry->AddHistogram("portico_audio_first_seconds",
                                   "From a request to the first sound of its answer.",
                                   RequestSecondsBounds(), {{"task", std::string(task)}})),
      factor(registry->AddHistogram("portico_audio_real_time_factor",
                                    "Seconds that an answer took for each second of its sound.",
                                    FactorBounds(), {{"task", std::string(task)}})),
      underrun(registry->AddHistogram(
          "portico_audio_underrun_seconds",
          "Silence in an answer that is played from its first sound on: late pieces.",
          UnderrunBounds(), {{"task", std::string(task)}})) {}

void AudioTimes::Came(TimePoint now, double seconds) {
  if (!first_) {
    first_ = played_ = now;
  } else if (now > played_) {
    silence_ += Seconds(now - played_);
    played_ = now;
  }
  last_ = now;
  if (!(seconds > 0 && seconds < kLongestPiece)) return;
  sound_ += seconds;
  played_ += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

void AudioTimes::Paused(Duration time) {
  if (!first_) return;
  paused_ += time;
  played_ += time;
}

void AudioTimes::Report(bool whole, AudioMetrics* metrics) const {
  if (!first_) return;
  metrics->first.Observe(Seconds(*first_ - asked_));
  if (!whole || sound_ <= 0) return;
  metrics->factor.Observe(std::max(0.0, Seconds(last_ - asked_ - paused_)) / sound_);
  metrics->underrun.Observe(silence_);
}

}  // namespace portico::pipeline
