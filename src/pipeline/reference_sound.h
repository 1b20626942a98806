// The sound of a voice to imitate.
#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status.h"
#include "media/sound.h"
#include "pipeline/blob.h"

namespace portico::pipeline {

// Immutable. Thread safe.
class ReferenceSound final : public media::Sound {
 public:
  explicit ReferenceSound(media::Sound sound) : media::Sound(std::move(sound)) {}

  // The samples in shared memory: the same for all requests and processes, made when it is first wanted and kept as
  // long as the sound. UNAVAILABLE: no memory or no file descriptor is left.
  StatusOr<std::shared_ptr<const Blob>> Shared() const;

 private:
  mutable Mutex mutex_;
  mutable std::shared_ptr<const Blob> shared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico::pipeline
