#include "pipeline/voice_store.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/ascii.h"

namespace portico::pipeline {
namespace {

size_t SampleBytes(const UploadedVoice& voice) {
  return voice.sound == nullptr ? 0 : voice.sound->samples.size() * sizeof(int16_t);
}

}  // namespace

VoiceStore::VoiceStore(Registry* registry)
    : count_gauge_(registry->AddGauge("portico_uploaded_voices", "Voices that were uploaded.")),
      bytes_gauge_(registry->AddGauge("portico_uploaded_voice_bytes",
                                      "Bytes of samples of the voices that were uploaded.")) {}

Status VoiceStore::CheckName(std::string_view name) {
  bool good = !name.empty() && name.size() <= kMaxNameBytes &&
              absl::ascii_isalnum(static_cast<unsigned char>(name.front()));
  for (const char c : name) {
    good = good &&
           (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-');
  }
  if (good) return OkStatus();
  return InvalidArgument("name", fmt::format("name must be 1 to {} letters, digits, '.', '_' and "
                                             "'-', and begin with a letter or a digit",
                                             kMaxNameBytes));
}

Status VoiceStore::Add(UploadedVoice voice) {
  PORTICO_RETURN_IF_ERROR(CheckName(voice.name));
  const size_t more = SampleBytes(voice);
  const MutexLock lock(&mutex_);
  if (voices_.contains(voice.name)) {
    return Error(StatusCode::kAlreadyExists,
                 fmt::format("name: there is a voice `{}`; delete it first", voice.name), "name");
  }
  if (voices_.size() >= kMostVoices || bytes_ + more > kMostBytes) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("at most {} voices and {} MB of their samples are kept; delete one "
                             "first",
                             kMostVoices, kMostBytes >> 20));
  }
  const std::string name = voice.name;
  voices_.emplace(name, std::make_shared<const UploadedVoice>(std::move(voice)));
  bytes_ += more;
  count_gauge_.Set(static_cast<double>(voices_.size()));
  bytes_gauge_.Set(static_cast<double>(bytes_));
  return OkStatus();
}

bool VoiceStore::Remove(std::string_view name) {
  const MutexLock lock(&mutex_);
  const auto found = voices_.find(name);
  if (found == voices_.end()) return false;
  bytes_ -= SampleBytes(*found->second);
  voices_.erase(found);
  count_gauge_.Set(static_cast<double>(voices_.size()));
  bytes_gauge_.Set(static_cast<double>(bytes_));
  return true;
}

std::shared_ptr<const UploadedVoice> VoiceStore::Find(std::string_view name) const {
  const MutexLock lock(&mutex_);
  const auto found = voices_.find(name);
  return found == voices_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<const UploadedVoice>> VoiceStore::All() const {
  const MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<const UploadedVoice>> all;
  all.reserve(voices_.size());
  for (const auto& [name, voice] : voices_) all.push_back(voice);
  return all;
}

}  // namespace portico::pipeline
