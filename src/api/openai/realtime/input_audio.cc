#include "api/openai/realtime/input_audio.h"

#include <algorithm>

#include "media/wav.h"

namespace portico::api::openai {

void InputAudio::Configure(const RealtimeConfig& config) {
  if (activity_) before_ms_ += activity_->position() * 1000 / config.input_rate();
  activity_.reset();
  samples_.clear();
  first_ = 0;
  if (!config.vad) return;
  media::VoiceActivityOptions options;
  options.sample_rate = config.input_rate();
  options.threshold = config.threshold;
  options.silence_duration_ms = config.silence_duration_ms;
  activity_.emplace(options);
}

media::Samples InputAudio::Cut(int64_t begin, int64_t end) {
  const auto at = [this](int64_t position) {
    return std::clamp<int64_t>(position - first_, 0, static_cast<int64_t>(samples_.size()));
  };
  media::Samples cut(samples_.begin() + at(begin), samples_.begin() + at(end));
  samples_.erase(samples_.begin(), samples_.begin() + at(end));
  first_ = std::max(first_, end);
  return cut;
}

bool InputAudio::Append(std::string_view bytes, const RealtimeConfig& config,
                        std::vector<Turn>* turns) {
  const media::Samples samples = DecodeSound(bytes, config.input);
  const size_t rate = static_cast<size_t>(config.input_rate());
  if (!activity_) {
    if (samples_.size() + samples.size() > size_t{kMaxSeconds} * rate) return false;
    samples_.insert(samples_.end(), samples.begin(), samples.end());
    return true;
  }
  // In small pieces: a turn ends at its bound, however much comes at once.
  const size_t piece = rate / 10;
  for (size_t at = 0; at < samples.size(); at += piece) {
    const size_t size = std::min(piece, samples.size() - at);
    Listen(media::SampleSpan(samples).subspan(at, size), config, turns);
  }
  return true;
}

void InputAudio::Listen(media::SampleSpan samples, const RealtimeConfig& config,
                        std::vector<Turn>* turns) {
  const int64_t rate = config.input_rate();
  samples_.insert(samples_.end(), samples.begin(), samples.end());
  std::vector<media::VoiceEvent> events;
  activity_->Process(samples, &events);
  const int64_t padding = config.prefix_padding_ms * rate / 1000;
  for (const media::VoiceEvent& event : events) {
    Turn turn;
    turn.started = event.start;
    turn.ms = before_ms_ + event.sample * 1000 / rate;
    if (event.start) {
      begun_ = std::max(first_, event.sample - padding);
      turn.ms = before_ms_ + begun_ * 1000 / rate;
    } else {
      const int64_t silence = config.silence_duration_ms * rate / 1000;
      turn.sound = Cut(begun_, event.sample + std::min(silence, padding));
    }
    turns->push_back(std::move(turn));
  }
  // Who goes on speaking begins a new turn.
  if (activity_->speaking() && activity_->position() - begun_ >= kMaxSeconds * rate) {
    const int64_t end = activity_->position();
    activity_->Finish(&events);
    turns->push_back({false, before_ms_ + end * 1000 / rate, Cut(begun_, end)});
  }
  if (!activity_->speaking()) {
    // A beginning is told min_speech_ms late.
    const int64_t keep = padding + rate / 2;
    const int64_t extra = static_cast<int64_t>(samples_.size()) - keep;
    if (extra > 0) {
      samples_.erase(samples_.begin(), samples_.begin() + extra);
      first_ += extra;
    }
  }
}

media::Samples InputAudio::Take() {
  media::Samples taken;
  taken.swap(samples_);
  first_ += static_cast<int64_t>(taken.size());
  return taken;
}

int64_t InputAudio::position_ms(const RealtimeConfig& config) const {
  return before_ms_ + (activity_ ? activity_->position() * 1000 / config.input_rate() : 0);
}

void InputAudio::Clear() { Take(); }

bool WholeSamples(std::string_view bytes, RealtimeConfig::Coding coding) {
  return coding != RealtimeConfig::Coding::kPcm || bytes.size() % 2 == 0;
}

media::Samples DecodeSound(std::string_view bytes, RealtimeConfig::Coding coding) {
  if (coding == RealtimeConfig::Coding::kMuLaw) return media::DecodeMuLaw(bytes);
  if (coding == RealtimeConfig::Coding::kALaw) return media::DecodeALaw(bytes);
  return media::SamplesFromBytes(bytes);
}

std::string EncodeSound(std::string_view pcm, RealtimeConfig::Coding coding) {
  if (coding == RealtimeConfig::Coding::kPcm) return std::string(pcm);
  const media::Samples samples = media::SamplesFromBytes(pcm);
  return coding == RealtimeConfig::Coding::kMuLaw ? media::EncodeMuLaw(samples)
                                                  : media::EncodeALaw(samples);
}

}  // namespace portico::api::openai
