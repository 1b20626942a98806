// The sounds of voices to imitate: fetched where they are named by address, then decoded.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/openai/audio/voice/voice_fields.h"
#include "base/status.h"
#include "pipeline/reference_sound.h"
#include "pipeline/request.h"
#include "service/upstream/media_fetch.h"
#include "service/upstream/media_rules.h"

namespace portico::api::openai {

inline constexpr double kMinReferenceSeconds = 0.5;
inline constexpr double kMaxReferenceSeconds = 60;
// Sounds of more samples a second are given to stages with so many.
inline constexpr int32_t kMaxReferenceRate = 48000;
// Of samples of loaded sounds, while requests and uploaded voices have them: 90 of the largest. Those
// that a stage process has read are in shared memory too, once.
inline constexpr size_t kMostSampleBytes = size_t{512} << 20;

// On a shard, one after the other. Destroying it ends the work.
class ReferenceLoad {
 public:
  using Sounds =
      std::vector<std::shared_ptr<const pipeline::ReferenceSound>>;  // one for each that was wanted
  using Done = std::function<void(StatusOr<Sounds>)>;

  // Calls `done` once, never from within this; it may destroy this. Errors name the field of the
  // sound at fault. RESOURCE_EXHAUSTED: kMostSampleBytes are loaded, or the pool is full. The
  // pipeline of the shard's context is there.
  static std::unique_ptr<ReferenceLoad> Start(ShardContext& shard, std::vector<WantedSound> wanted,
                                              Done done);
  // What is loaded now, by all shards.
  static size_t SampleBytes();
  ~ReferenceLoad() { *alive_ = nullptr; }
  ReferenceLoad(const ReferenceLoad&) = delete;
  ReferenceLoad& operator=(const ReferenceLoad&) = delete;

 private:
  using Decoded = StatusOr<std::shared_ptr<const pipeline::ReferenceSound>>;

  ReferenceLoad(ShardContext& shard, std::vector<WantedSound> wanted, Done done);
  void Next();
  void Decode(std::shared_ptr<const std::string> file);
  void OnDecoded(Decoded sound);
  void Fail(const Status& status, std::string_view between);

  ShardContext& shard_;
  MediaRules rules_;
  const std::vector<WantedSound> wanted_;
  Done done_;
  Sounds sounds_;
  size_t total_ = 0;  // bytes of the files
  std::unique_ptr<MediaFetch> fetch_;
  std::shared_ptr<ReferenceLoad*> alive_ = std::make_shared<ReferenceLoad*>(this);
};

// The request's references get them in order.
void GiveSounds(const ReferenceLoad::Sounds& sounds, pipeline::Request* request);

}  // namespace portico::api::openai
