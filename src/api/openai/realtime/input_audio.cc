#include "api/openai/realtime/input_audio.h"

#include <algorithm>
#include <utility>

#include "media/wav.h"

namespace portico::api::openai {
namespace {

// With semantic_vad, silence of which a pause is made: longer than those between words.
constexpr int32_t kPauseMs = 300;

}  // namespace

void InputAudio::Configure(const RealtimeConfig& config) {
  if (activity_) before_ms_ += activity_->position() * 1000 / config.input_rate();
  activity_.reset();
  samples_.clear();
  first_ = 0;
  paused_.reset();
  if (!config.vad) return;
  media::VoiceActivityOptions options;
  options.sample_rate = config.input_rate();
  options.threshold = config.threshold;
  options.silence_duration_ms = config.semantic_vad() ? kPauseMs : config.silence_duration_ms;
  activity_.emplace(options);
}

media::Samples InputAudio::Copy(int64_t begin, int64_t end) const {
  const auto at = [this](int64_t position) {
    return std::clamp<int64_t>(position - first_, 0, static_cast<int64_t>(samples_.size()));
  };
  return media::Samples(samples_.begin() + at(begin), samples_.begin() + at(end));
}

media::Samples InputAudio::Cut(int64_t begin, int64_t end) {
  media::Samples cut = Copy(begin, end);
  const int64_t gone = std::clamp<int64_t>(end - first_, 0, static_cast<int64_t>(samples_.size()));
  samples_.erase(samples_.begin(), samples_.begin() + gone);
  first_ = std::max(first_, end);
  return cut;
}

int64_t InputAudio::Tail(const RealtimeConfig& config) {
  const int32_t silence = config.semantic_vad() ? kPauseMs : config.silence_duration_ms;
  return int64_t{std::min(silence, config.prefix_padding_ms)} * config.input_rate() / 1000;
}

void InputAudio::Pause(const RealtimeConfig& config, int64_t at, std::vector<Turn>* turns) {
  paused_ = at;
  const int64_t end = at + Tail(config);
  turns->push_back(
      {Turn::What::kPaused, before_ms_ + at * 1000 / config.input_rate(), Copy(piece_, end)});
  piece_ = end;
}

std::optional<InputAudio::Turn> InputAudio::EndTurn(const RealtimeConfig& config) {
  if (!paused_) return std::nullopt;
  const int64_t at = *std::exchange(paused_, std::nullopt);
  return Turn{Turn::What::kStopped, before_ms_ + at * 1000 / config.input_rate(),
              Cut(begun_, at + Tail(config))};
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
    const int64_t ms = before_ms_ + event.sample * 1000 / rate;
    if (event.start && paused_) {
      paused_.reset();
      turns->push_back({Turn::What::kResumed, ms, {}});
    } else if (event.start) {
      begun_ = piece_ = std::max(first_, event.sample - padding);
      turns->push_back({Turn::What::kStarted, before_ms_ + begun_ * 1000 / rate, {}});
    } else if (config.semantic_vad()) {
      Pause(config, event.sample, turns);
    } else {
      turns->push_back({Turn::What::kStopped, ms, Cut(begun_, event.sample + Tail(config))});
    }
  }
  if (paused_ && activity_->position() - *paused_ >= config.longest_pause_ms() * rate / 1000) {
    turns->push_back(*EndTurn(config));
  }
  // Who goes on speaking begins a new turn.
  if (activity_->speaking() && activity_->position() - begun_ >= kMaxSeconds * rate) {
    const int64_t end = activity_->position();
    activity_->Finish(&events);
    turns->push_back({Turn::What::kStopped, before_ms_ + end * 1000 / rate, Cut(begun_, end)});
  }
  if (!speaking()) {
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
  paused_.reset();
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

std::shared_ptr<const std::string> SoundFile(media::SampleSpan samples,
                                             const RealtimeConfig& config) {
  auto file = std::make_shared<std::string>(
      media::WavHeader(config.input_rate(), static_cast<uint32_t>(samples.size() * 2)));
  media::AppendBytes(samples, file.get());
  return file;
}

std::string EncodeSound(std::string_view pcm, RealtimeConfig::Coding coding) {
  if (coding == RealtimeConfig::Coding::kPcm) return std::string(pcm);
  const media::Samples samples = media::SamplesFromBytes(pcm);
  return coding == RealtimeConfig::Coding::kMuLaw ? media::EncodeMuLaw(samples)
                                                  : media::EncodeALaw(samples);
}

}  // namespace portico::api::openai
