#include "api/openai/audio/voice/reference_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "api/openai/audio/chat/decode_chat_audio.h"
#include "base/cpu_pool.h"
#include "media/decoder.h"
#include "media/resampler.h"

namespace portico::api::openai {
namespace {

using pipeline::ReferenceSound;

constexpr size_t kMostReferenceBytes = size_t{32} << 20;  // of the files of one request
std::atomic<size_t> sample_bytes{0};
constexpr int kSilent = 33;  // -60 dB

// INVALID_ARGUMENT without a field, or what the decoder says.
StatusOr<std::shared_ptr<const ReferenceSound>> DecodeReference(const std::string& file) {
  media::AudioLimits limits;
  limits.max_seconds = kMaxReferenceSeconds;
  PORTICO_ASSIGN_OR_RETURN(media::Sound sound, media::DecodeAudio(file, limits));
  if (sound.seconds() < kMinReferenceSeconds) {
    return InvalidArgument("",
                           fmt::format("the audio lasts less than {:g} s, too short for a voice",
                                       kMinReferenceSeconds));
  }
  if (std::all_of(sound.samples.begin(), sound.samples.end(),
                  [](int16_t sample) { return sample < kSilent && sample > -kSilent; })) {
    return InvalidArgument("", "the audio is silent");
  }
  if (sound.sample_rate > kMaxReferenceRate) {
    sound = media::Resample(std::move(sound), kMaxReferenceRate);
  }
  const size_t bytes = sound.samples.size() * sizeof(int16_t);
  if (sample_bytes.fetch_add(bytes) + bytes > kMostSampleBytes) {
    sample_bytes.fetch_sub(bytes);
    return Error(StatusCode::kResourceExhausted,
                 "too many voices are imitated now: try again in a moment");
  }
  const auto forget = [bytes](const ReferenceSound* loaded) {
    delete loaded;
    sample_bytes.fetch_sub(bytes);
  };
  return std::shared_ptr<const ReferenceSound>(new ReferenceSound(std::move(sound)), forget);
}

}  // namespace

size_t ReferenceLoad::SampleBytes() { return sample_bytes.load(); }

std::unique_ptr<ReferenceLoad> ReferenceLoad::Start(ShardContext& shard,
                                                    std::vector<WantedSound> wanted, Done done) {
  std::unique_ptr<ReferenceLoad> load(new ReferenceLoad(shard, std::move(wanted), std::move(done)));
  load->Next();
  return load;
}

ReferenceLoad::ReferenceLoad(ShardContext& shard, std::vector<WantedSound> wanted, Done done)
    : shard_(shard),
      rules_(MediaRulesOf(*shard.api.pipeline)),
      wanted_(std::move(wanted)),
      done_(std::move(done)) {}

void ReferenceLoad::Next() {
  const WantedSound& wanted = wanted_[sounds_.size()];
  if (!wanted.url) return Decode(wanted.file);
  rules_.max_bytes = std::min(rules_.max_bytes, kMostReferenceBytes - total_);
  fetch_ = MediaFetch::Start(shard_.shard, *shard_.api.pool, rules_, *wanted.url,
                             [this](StatusOr<MediaFetch::Bytes> bytes) {
                               if (!bytes.ok()) return Fail(bytes.status(), " ");
                               Decode(*std::move(bytes));
                             });
}

void ReferenceLoad::Decode(std::shared_ptr<const std::string> file) {
  total_ = std::min(total_ + file->size(), kMostReferenceBytes);
  const auto tell = [alive = alive_, &shard = shard_.shard](Decoded sound) {
    auto held = std::make_shared<Decoded>(std::move(sound));
    shard.Post([alive, held] {
      if (*alive != nullptr) (*alive)->OnDecoded(std::move(*held));
    });
  };
  CpuPool::Task task = [tell, file = std::move(file)] { tell(DecodeReference(*file)); };
  if (shard_.api.pool->Submit(std::move(task))) return;
  tell(Error(StatusCode::kResourceExhausted, "the server is busy: try again in a moment"));
}

void ReferenceLoad::OnDecoded(Decoded sound) {
  fetch_.reset();
  if (!sound.ok()) return Fail(sound.status(), ": ");
  sounds_.push_back(*std::move(sound));
  if (sounds_.size() < wanted_.size()) return Next();
  const Done done = std::exchange(done_, nullptr);
  done(std::move(sounds_));
}

void ReferenceLoad::Fail(const Status& status, std::string_view between) {
  const WantedSound& wanted = wanted_[sounds_.size()];
  const Done done = std::exchange(done_, nullptr);
  done(Error(status.code(), fmt::format("{}{}{}", wanted.place, between, MessageOf(status)),
             wanted.field, ReasonOf(status)));
}

void GiveSounds(const ReferenceLoad::Sounds& sounds, pipeline::Request* request) {
  const size_t count = std::min(sounds.size(), request->references.size());
  for (size_t i = 0; i < count; ++i) request->references[i].sound = sounds[i];
}

}  // namespace portico::api::openai
