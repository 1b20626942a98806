#include "media/voice_activity.h"

#include <algorithm>
#include <cmath>

namespace portico::media {
namespace {

constexpr int32_t kFrameMs = 10;
constexpr double kLowestFloor = -62;   // dB of full scale
constexpr double kHighestFloor = -25;  // louder rooms are speech
constexpr double kAlwaysQuiet = -52;
constexpr double kRise = 0.02;    // of the difference, each frame; it falls at once
constexpr double kMargin = 0.25;  // seconds around a stretch
constexpr int32_t kStretchSilenceMs = 350;

// Where the 30 ms with the least energy are: between two words, if anywhere.
int64_t QuietestPoint(const Sound& sound, int64_t begin, int64_t end) {
  const int64_t window = sound.sample_rate * 3 / 100;
  int64_t best = end;
  double least = HUGE_VAL;
  for (int64_t at = begin; at + window <= end; at += window / 3) {
    double energy = 0;
    for (int64_t i = at; i < at + window; ++i) {
      const double value = sound.samples[static_cast<size_t>(i)];
      energy += value * value;
    }
    if (energy >= least) continue;
    least = energy;
    best = at + window / 2;
  }
  return best;
}

}  // namespace

VoiceActivity::VoiceActivity(const VoiceActivityOptions& options)
    : options_(options),
      frame_samples_(std::max<int64_t>(1, int64_t{options.sample_rate} * kFrameMs / 1000)),
      floor_(kLowestFloor) {}

void VoiceActivity::Process(SampleSpan samples, std::vector<VoiceEvent>* events) {
  for (const int16_t sample : samples) {
    const double value = sample / 32768.0;
    energy_ += value * value;
    ++position_;
    if (++in_frame_ < frame_samples_) continue;
    const double mean = energy_ / static_cast<double>(frame_samples_);
    energy_ = 0;
    in_frame_ = 0;
    Frame(mean > 1e-10 ? 10 * std::log10(mean) : -100, events);
  }
}

void VoiceActivity::Frame(double decibels, std::vector<VoiceEvent>* events) {
  const double above = 3 + 12 * std::clamp(options_.threshold, 0.0, 1.0);
  const bool loud = decibels > std::max(floor_ + above, kAlwaysQuiet);
  if (decibels < floor_) {
    floor_ = std::max(decibels, kLowestFloor);
  } else if (!loud) {
    floor_ = std::min(floor_ + (decibels - floor_) * kRise, kHighestFloor);
  }
  const int64_t ms = options_.sample_rate / 1000;
  if (loud) {
    loud_ms_ += kFrameMs;
    quiet_ms_ = 0;
    if (!speaking_ && loud_ms_ >= options_.min_speech_ms) {
      speaking_ = true;
      events->push_back({true, std::max<int64_t>(0, position_ - loud_ms_ * ms)});
    }
    return;
  }
  quiet_ms_ += kFrameMs;
  // A gap between two syllables is no new beginning.
  if (quiet_ms_ > 2 * kFrameMs) loud_ms_ = 0;
  if (speaking_ && quiet_ms_ >= options_.silence_duration_ms) {
    speaking_ = false;
    events->push_back({false, position_ - quiet_ms_ * ms});
  }
}

void VoiceActivity::Finish(std::vector<VoiceEvent>* events) {
  if (!speaking_) return;
  speaking_ = false;
  loud_ms_ = 0;
  events->push_back({false, position_});
}

std::vector<Stretch> SpeechStretches(const Sound& sound, double max_seconds) {
  VoiceActivityOptions options;
  options.sample_rate = sound.sample_rate;
  options.threshold = 0.3;
  options.silence_duration_ms = kStretchSilenceMs;
  VoiceActivity activity(options);
  std::vector<VoiceEvent> events;
  activity.Process(sound.samples, &events);
  activity.Finish(&events);

  const auto margin = static_cast<int64_t>(kMargin * sound.sample_rate);
  const auto most = static_cast<int64_t>(max_seconds * sound.sample_rate);
  const auto size = static_cast<int64_t>(sound.samples.size());
  std::vector<Stretch> stretches;
  for (size_t i = 0; i + 1 < events.size(); i += 2) {
    const int64_t begin = std::max<int64_t>(0, events[i].sample - margin);
    const int64_t end = std::min(size, events[i + 1].sample + margin);
    // Sentences that follow each other are heard together: the language model needs the words
    // around.
    if (!stretches.empty() && end - stretches.back().begin <= most &&
        begin - stretches.back().end < margin) {
      stretches.back().end = end;
      continue;
    }
    int64_t at = stretches.empty() ? begin : std::max(begin, stretches.back().end);
    while (end - at > most) {
      const int64_t cut = QuietestPoint(sound, at + most * 2 / 3, at + most);
      stretches.push_back({at, cut});
      at = cut;
    }
    if (at < end) stretches.push_back({at, end});
  }
  return stretches;
}

}  // namespace portico::media
